"""The servers that the tests start: they work, survive kills, and die with the run."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from deploy.demo.children import ChildFailed
from tests.servers.places import new_directory, pid_runs
from tests.servers.ports import OwnPorts, accepts_connections, free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import ROOT, Launch, service_environment
from tests.servers.valkey import ValkeyServer


def test_no_two_processes_are_given_the_same_port():
    with closing(OwnPorts()) as one, closing(OwnPorts()) as other:
        assert not {one.free() for _ in range(500)} & {other.free() for _ in range(500)}


def test_a_port_that_someone_listens_on_is_not_given():
    with closing(OwnPorts()) as ports, socket.create_server(("127.0.0.1", ports.free())) as server:
        assert server.getsockname()[1] not in {ports.free() for _ in range(500)}


async def test_postgres_keeps_what_was_committed_over_a_kill(postgres_server: PostgresServer, postgres_url: str):
    engine = create_async_engine(postgres_url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE t (n int)"))
        await connection.execute(text("INSERT INTO t VALUES (7)"))
    await engine.dispose()

    postgres_server.kill()
    postgres_server.restart()

    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT n FROM t")) == 7
    await engine.dispose()


def test_each_test_gets_a_database_of_its_own(postgres_server: PostgresServer, postgres_url: str):
    other = postgres_server.url(postgres_server.new_database())
    assert other != postgres_url
    assert postgres_url.startswith("postgresql+asyncpg://")


def test_valkey_keeps_what_it_acknowledged_over_a_kill(valkey_server: ValkeyServer, valkey_url: str):
    assert valkey_url == valkey_server.url
    assert valkey_server.answer("SET key value") == "+OK"

    valkey_server.kill()
    assert valkey_server.answer("PING") == ""
    valkey_server.restart()

    assert valkey_server.answer("STRLEN key") == ":5"


@pytest.mark.parametrize("_again", [1, 2])
def test_valkey_is_empty_for_each_test(valkey_server: ValkeyServer, valkey_url: str, _again: int):
    assert valkey_url
    assert valkey_server.answer("DBSIZE") == ":0"
    assert valkey_server.answer("SET left behind") == "+OK"


def test_a_service_is_ready_when_its_address_answers(launch: Launch, tmp_path: Path):
    port = free_port()
    (tmp_path / "index.html").write_text("here")
    arguments = (str(port), "--bind", "127.0.0.1")
    service = launch("http.server", *arguments, settings={}, ready_url=f"http://127.0.0.1:{port}/index.html")
    service.wait_ready()
    assert service.stop() == -15
    assert not accepts_connections(port)
    assert "GET /index.html" in service.log()


def test_a_service_that_ends_early_says_why(launch: Launch):
    service = launch("no_such_module_at_all", settings={}, ready_url="http://127.0.0.1:9/")
    with pytest.raises(ChildFailed, match="No module named no_such_module_at_all"):
        service.wait_ready()


def test_a_service_sees_none_of_the_developers_settings():
    assert not [name for name in service_environment({}) if name.startswith(("BACKEND_", "CHAT_SHELL_"))]


_A_RUN = """
import sys, time
from pathlib import Path
from deploy.demo.children import Child, ChildSpec
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

log, mechanism = Path(sys.argv[1]), sys.argv[2]
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
plain = Child(ChildSpec("plain", sleep, {}, Path("/"), log, mechanism=mechanism))
postgres, valkey = PostgresServer(), ValkeyServer()
for server in (plain, postgres, valkey):
    server.start()
print(postgres.port, valkey.port, plain.pid, flush=True)
time.sleep(600)
"""
_MECHANISMS = ("kernel", "watcher") if sys.platform == "linux" else ("watcher",)


@pytest.mark.parametrize("mechanism", _MECHANISMS)
def test_nothing_outlives_a_killed_run(mechanism: str, tmp_path: Path):
    command = [sys.executable, "-c", _A_RUN, str(tmp_path / "log"), mechanism]
    with subprocess.Popen(command, env=service_environment({}), cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        postgres_port, valkey_port, plain_pid = (int(word) for word in run.stdout.readline().split())
        assert accepts_connections(postgres_port)
        assert accepts_connections(valkey_port)
        run.kill()

    wait_until(lambda: not pid_runs(plain_pid))
    wait_until(lambda: not accepts_connections(postgres_port))
    wait_until(lambda: not accepts_connections(valkey_port))


def test_files_of_killed_runs_are_swept():
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        pass
    leftover = new_directory("sweep").with_name(f"ballast-test-{ended.pid}-sweep")
    leftover.mkdir()
    mine = new_directory("sweep")
    assert not leftover.exists()
    assert mine.exists()
    shutil.rmtree(mine)


def wait_until(reached: Callable[[], bool]) -> None:
    """Poll; the test's own timeout ends it when it is never reached."""
    while not reached():
        time.sleep(0.02)
