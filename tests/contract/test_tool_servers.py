"""One suite for the fake tool server and for both ways to real ones, over HTTP and as a child."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import structlog.testing
from pydantic import SecretStr

from chat_shell.tools.domain.server_entry import LocalServer, ServerEntry, WebServer
from chat_shell.tools.mcp.child_streams import start_child
from chat_shell.tools.mcp.local_server import LocalToolServer
from chat_shell.tools.mcp.web_server import WebToolServer
from chat_shell.tools.ports.tools import CallFailure, ToolServer, ToolServerFailed
from tests.examples import first_of
from tests.fakes.tool_servers import FakeToolServer
from tests.patience import PATIENCE_SECONDS
from tests.servers.forks import ForkServers
from tests.servers.ports import accepts_connections, free_port
from tests.servers.services import ROOT, RunningService
from tests.servers.tool_server import CALLS

KEY = "s3cret-key"
CALL_SECONDS = 2 * PATIENCE_SECONDS


class Place:
    """A server under test with the file that names its list, and how it is started again after its death."""

    def __init__(self, server: ToolServer, listing: Path, restart: Callable[[], None]) -> None:
        self.server = server
        self.listing = listing
        self.restart = restart


@asynccontextmanager
async def running(server: ToolServer) -> AsyncGenerator[None]:
    keeping = asyncio.create_task(server.run())
    await asyncio.sleep(0)  # the task takes its first step
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


def web_entry(port: int) -> tuple[ServerEntry, WebServer]:
    link = WebServer(address=f"http://127.0.0.1:{port}/mcp", headers={"x-key": SecretStr(KEY)})
    return ServerEntry(name="web", link=link, timeout_seconds=CALL_SECONDS), link


def local_entry(listing: Path) -> tuple[ServerEntry, LocalServer]:
    link = LocalServer(
        command=sys.executable,
        arguments=("-m", "tests.servers.tool_server", "stdio", str(listing)),
        environment={"PYTHONPATH": SecretStr(str(ROOT)), "KEY": SecretStr(KEY)},
    )
    return ServerEntry(name="local", link=link, timeout_seconds=CALL_SECONDS), link


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "listing"
    path.write_text("usual")
    return path


@pytest.fixture
def web_port(listing: Path, tmp_path: Path, forks: ForkServers) -> Iterator[tuple[int, Callable[[], None]]]:
    port = free_port()
    services: list[RunningService] = []

    def start() -> None:
        command = ("tests.servers.tool_server", "http", str(port), str(listing))
        service = RunningService(*command, settings={"KEY": KEY}, directory=tmp_path, forks=forks)
        service.start()
        services.append(service)
        service.wait_until(lambda: accepts_connections(port), 60)

    start()
    yield port, start
    for service in services:
        service.stop()


async def _no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture(params=["fake", *first_of("web", "local")])
async def place(request: pytest.FixtureRequest, listing: Path) -> AsyncIterator[Place]:
    def nothing() -> None:
        pass

    match request.param:
        case "fake":
            made = Place(FakeToolServer(tuple(CALLS)), listing, nothing)
        case "web":
            port, start = request.getfixturevalue("web_port")
            made = Place(WebToolServer(*web_entry(port)), listing, start)
        case _:
            made = Place(LocalToolServer(*local_entry(listing), sleep=_no_pause), listing, nothing)
    async with running(made.server):
        yield made


async def test_it_lists_its_tools(place: Place):
    tools = await place.server.list_tools()

    assert {tool.name for tool in tools} == set(CALLS)
    assert {tool.description for tool in tools} == {f"{name} something." for name in CALLS}


@pytest.mark.parametrize(
    ("tool", "text", "failed"),
    [
        ("echo", "hello\nworld", False),
        ("broken", "no hello\nworld", True),
        ("refused", "not like that", True),
        ("binary", "a picture:\n[image/png, 10 bytes, not shown]", False),
    ],
)
async def test_it_answers_calls(place: Place, tool: str, text: str, failed: bool):
    result = await place.server.call(tool, {"text": "hello\nworld"})

    assert (result.text, result.failed) == (text, failed)


async def test_a_result_that_is_only_structured_is_read_as_json(place: Place):
    assert (await place.server.call("structured", {"text": "it"})).text == '{"said":"it"}'


async def test_calls_run_side_by_side(place: Place):
    results = await asyncio.gather(*(place.server.call("echo", {"text": str(n)}) for n in range(8)))

    assert [result.text for result in results] == [str(n) for n in range(8)]


async def test_a_cancelled_call_ends_at_once_and_spoils_no_other(place: Place):
    hanging = asyncio.create_task(place.server.call("hang", {}))
    assert (await place.server.call("echo", {"text": "before"})).text == "before"
    hanging.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await hanging
    assert (await place.server.call("echo", {"text": "after"})).text == "after"


async def test_a_result_of_100_megabytes_is_refused_and_never_held(place: Place):
    await place.server.call("echo", {"text": "warm"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(ToolServerFailed) as failed:
        await place.server.call("huge", {})

    assert failed.value.failure is CallFailure.TOO_LARGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes


async def test_a_server_that_dies_in_a_call_fails_that_call_and_serves_again(place: Place):
    await place.server.list_tools()
    with pytest.raises(ToolServerFailed) as failed:
        await place.server.call("die", {})
    assert failed.value.failure in (CallFailure.BROKE, CallFailure.AWAY)

    place.restart()
    assert (await _when_back(place.server)) == "again"


async def _when_back(server: ToolServer) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return (await server.call("echo", {"text": "again"})).text
            except ToolServerFailed:
                await asyncio.sleep(0.05)


async def test_calls_fail_while_it_does_not_run(listing: Path):
    for server in (WebToolServer(*web_entry(1)), LocalToolServer(*local_entry(listing))):
        with pytest.raises(ToolServerFailed) as failed:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await server.call("echo", {})
        assert failed.value.failure is CallFailure.AWAY


async def test_an_address_where_nobody_listens_is_away():
    server = WebToolServer(*web_entry(free_port()))
    async with running(server):
        with pytest.raises(ToolServerFailed) as failed:
            await server.list_tools()
    assert failed.value.failure is CallFailure.AWAY


async def test_the_operators_headers_are_sent(web_port: tuple[int, Callable[[], None]]):
    entry, link = web_entry(web_port[0])
    server = WebToolServer(entry, link.model_copy(update={"headers": {}}))
    async with running(server):
        with pytest.raises(ToolServerFailed):
            await server.list_tools()


async def test_a_child_gets_the_named_variables_and_no_others(listing: Path):
    assert "PYTEST_CURRENT_TEST" in os.environ
    server = LocalToolServer(*local_entry(listing))
    async with running(server):
        assert (await server.call("environment", {"text": "KEY"})).text == KEY
        assert (await server.call("environment", {"text": "PYTEST_CURRENT_TEST"})).text == "(none)"


def _wait_for_text(path: Path) -> None:
    while not path.exists() or not path.read_text():
        time.sleep(0.02)


async def test_a_child_ends_with_its_server(listing: Path, tmp_path: Path):
    note = tmp_path / "pid"
    script = f"import os, sys, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    link = LocalServer(command=sys.executable, arguments=("-c", script))
    server = LocalToolServer(ServerEntry(name="deaf", link=link), link)
    async with running(server), asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.to_thread(_wait_for_text, note)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


async def test_a_deaf_child_ends_also_when_the_wait_for_its_end_is_cancelled():
    started = asyncio.Queue[asyncio.subprocess.Process]()

    async def come_and_go() -> None:
        async with start_child(ending("import time; time.sleep(600)"), 1_000) as (one, _):
            started.put_nowait(one.started)

    task = asyncio.create_task(come_and_go())
    child = await started.get()
    assert child.stdin is not None
    assert child.stdin.is_closing()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def end_of(link: LocalServer) -> dict[str, object]:
    """Return the log line about a command that does not serve."""
    has_ended = asyncio.Event()

    async def note(_seconds: float) -> None:
        has_ended.set()
        await asyncio.Event().wait()

    with structlog.testing.capture_logs() as lines:
        async with running(LocalToolServer(ServerEntry(name="brief", link=link), link, sleep=note)):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await has_ended.wait()
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    return dict(line)


def ending(script: str, **environment: str) -> LocalServer:
    given = {name: SecretStr(value) for name, value in environment.items()}
    return LocalServer(command=sys.executable, arguments=("-c", script), environment=given)


async def test_why_a_child_ended_at_once_is_logged_within_bounds_and_without_secrets():
    said = "'x' * 99_999 + '\\n' + os.environ['KEY'] + ' is \\x1b[31mwrong\\n'"
    line = await end_of(ending(f"import os, sys; sys.stderr.write({said}); sys.exit(3)", KEY=KEY))
    assert (line["event"], line["server"], line["exit_code"]) == ("Tool server has ended", "brief", 3)
    assert line["last_line"] == "*** is [31mwrong"
    assert len(str((await end_of(ending("import sys; sys.exit('y' * 1_500)")))["last_line"])) == 300


async def test_a_command_that_is_not_there_is_logged():
    line = await end_of(LocalServer(command="/nowhere/at-all"))
    assert (line["event"], line["reason"]) == ("Tool server cannot be started", "No such file or directory")
