"""A library that no setting chooses is not imported: it would cost memory in every process (ADR 11)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.services import service_environment

pytestmark = pytest.mark.whole

_SERVE_AND_STOP = """
import asyncio, os, signal, sys
import backend.__main__
from backend.app import serve
from backend.settings import Settings
from shared.environment import read_settings

async def serve_and_stop():
    # the handler stands before the start first waits for anything
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    await serve(read_settings(Settings, os.environ))

asyncio.run(serve_and_stop())
print(*sys.modules)
"""


_SERVE_CHAT_SHELL = """
import asyncio, os, signal, sys
import chat_shell.__main__
from chat_shell.app import serve
from chat_shell.settings import Settings
from shared.environment import read_settings

def stop_once_it_listens(loop):
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        loop.call_later(0.01, stop_once_it_listens, loop)
    else:
        os.kill(os.getpid(), signal.SIGTERM)

async def serve_and_stop():
    loop = asyncio.get_running_loop()
    loop.call_soon(stop_once_it_listens, loop)
    await serve(read_settings(Settings, os.environ), os.environ)

asyncio.run(serve_and_stop())
print(*sys.modules)
"""

_SWEEP_AN_EMPTY_DATABASE = """
import asyncio, os, sys
from backend.foundation.sql.chosen import open_database
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.groups.services import GroupNames
from backend.groups.sql.store import SqlGroupStore
from backend.knowledge.wiring import KnowledgeTerms, build_knowledge
from backend.search.wiring import build_search
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.migrations.migrate import migrate
from shared.clock import SystemClock
from shared.models.safe_summary import RestrictedGrade

async def sweep():
    database = open_database(os.environ["BACKEND_DATABASE_URL"])
    await migrate(database)
    search = build_search(database, SystemClock(), NO_MEANING)
    reader = LibraryDocumentReader()
    names = GroupNames(SqlGroupStore(database))
    terms = KnowledgeTerms(RestrictedGrade.OPEN, is_only_replica=True, groups=names)
    built = build_knowledge(database, SystemClock(), (), search, reader, terms)
    maintenance = built.store.maintenance
    await maintenance.sweep(is_only_replica=True)
    await maintenance.index.tidy()
    await database.close()

asyncio.run(sweep())
print(*sys.modules)
"""


def modules_of_a_backend(directory: Path, chat_shell_url: str) -> set[str]:
    """Start a backend on SQLite with events in its memory, stop it, and return what it had imported."""
    settings = {
        "BACKEND_PORT": "0",
        "BACKEND_CHAT_SHELL_URL": chat_shell_url,
        "BACKEND_ADMIN_KEY": "admin-key-of-the-test",
        "BACKEND_SECRET": "secret-of-the-test",
        "BACKEND_DATABASE_URL": f"sqlite+aiosqlite:///{directory}/ballast.db",
        "SERVICE_TOKEN": "service-token-of-the-test",
    }
    return modules_after(_SERVE_AND_STOP, directory, settings)


def modules_after(script: str, directory: Path, settings: dict[str, str]) -> set[str]:
    """Run a script that prints the names of the modules which it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=service_environment(settings),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_backend_imports_what_its_settings_choose(tmp_path: Path):
    never = {"redis", "asyncpg", "alembic", "pypdfium2", "docx", "pptx", "openpyxl", "mcp", "mcp_types", "numpy"}
    never |= {"rich", "cryptography"}
    over_http = modules_of_a_backend(tmp_path, "http://127.0.0.1:1")
    assert over_http & {*never, "grpc", "google.protobuf"} == set()
    assert "backend.chat_shell_client.http_client" in over_http
    over_grpc = modules_of_a_backend(tmp_path, "grpc://127.0.0.1:1")
    assert over_grpc & {*never, "aiohttp"} == set()
    assert "backend.chat_shell_client.grpc_client" in over_grpc


def test_a_backend_without_documents_needs_no_numpy(tmp_path: Path):
    settings = {"BACKEND_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/ballast.db"}
    modules = modules_after(_SWEEP_AN_EMPTY_DATABASE, tmp_path, settings)
    assert "numpy" not in modules
    assert "backend.search.sql.index" in modules


def test_a_chat_shell_imports_the_client_of_tool_servers_where_some_are_configured(tmp_path: Path):
    settings = {
        "CHAT_SHELL_GRPC_PORT": "0",
        "CHAT_SHELL_HTTP_PORT": "0",
        "SERVICE_TOKEN": "service-token-of-the-test",
    }
    plain = modules_after(_SERVE_CHAT_SHELL, tmp_path, settings)
    assert plain & {"mcp", "mcp_types", "httpx2", "rich", "cryptography"} == set()
    path = tmp_path / "tools.yaml"
    path.write_text("servers: [{name: nobody, address: 'http://127.0.0.1:1/mcp'}]")
    configured = modules_after(_SERVE_CHAT_SHELL, tmp_path, {**settings, "CHAT_SHELL_TOOLS_FILE": str(path)})
    assert {"mcp", "mcp_types"} <= configured
