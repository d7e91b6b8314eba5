"""One running pair for all pages: the demo's knowledge, and the tool server of docs/tools.md."""

import shlex
import sys
from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.console.running import DEMO_MODEL, Running, start_running
from tests.guides.blocks import all_blocks
from tests.guides.programs import missing_programs
from tests.servers.fixtures import launching
from tests.servers.postgres import PostgresServer

if missing := missing_programs():
    pytest.exit(f"The pages use {', '.join(missing)}, which this machine has not.", returncode=1)

_TOOLS_PAGE = "docs/tools.md"
_TOOLS = """\
servers:
  - name: stock
    command: {python}
    arguments: [{server}]
"""


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The pair with the demo's knowledge, and a conversation that somebody has had with it."""
    directory = tmp_path_factory.mktemp("guides")
    (server,) = [block for block in all_blocks() if block.page == _TOOLS_PAGE and block.saved_as]
    (directory / "stock.py").write_text(server.code, encoding="utf-8")
    tools = directory / "tools.yaml"
    tools.write_text(_TOOLS.format(python=shlex.quote(sys.executable), server=directory / "stock.py"), encoding="utf-8")
    with launching(directory) as launch:
        running = start_running(launch, directory, CHAT_SHELL_TOOLS_FILE=str(tools))
        ask_twice(running)
        yield running


def ask_twice(running: Running) -> None:
    """Have a conversation of two turns."""
    with OpenAI(base_url=f"{running.pair.backend_url}/v1", api_key=running.demo.user_key) as client:
        first = client.responses.create(model=DEMO_MODEL, input="How long are reports kept?")
        client.responses.create(model=DEMO_MODEL, input="And who reads them?", previous_response_id=first.id)


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """What an operator has set who looks after a PostgreSQL: `$DATABASE`, and its programs on the path."""
    name = postgres_server.new_database()
    yield postgres_server.client_environment | {"DATABASE": postgres_server.url(name, driver="")}
    postgres_server.drop_database(name)
