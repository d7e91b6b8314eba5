"""`kill -9` at each point of a turn: the next request holds the same bytes again, or the log cut at a complete pair.

The turn of a killed backend is continued at its next start, as far as nothing of its model call was shown.
Each test has a twin: a conversation with the same words that nobody killed.
"""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import httpx2
import pytest

from tests.e2e.half_turns import HALF, half_a_turn, held_calls
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.prefixes import added, asking, check_never_moves, check_pairs, neutral
from tests.e2e.turns import (
    Body,
    bare_client,
    file_search,
    live_events,
    messages_in,
    new_base,
    turn,
)
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.servers.ports import free_port
from tests.servers.services import Launch, RunningService, lines_of

pytestmark = pytest.mark.whole

AT_ONCE = Reply(text=("Two.",), hold_after=0)
SEARCH = ScriptedCall(name="knowledge_base_search", arguments='{"query": "wine"}', call_id="call_1")
ANSWERED_AT_ONCE = ScriptedCall(name="no_such_tool", call_id="call_1")


@dataclass
class Mortal:
    """A pair that a test may kill; its chat_shell looks for the backend at a port where nobody is, or a test."""

    pair: Pair
    tool_port: int

    def victim(self, name: str) -> RunningService:
        return self.pair.backend if name == "backend" else self.pair.chat_shell

    @contextmanager
    def locked_database(self) -> Generator[None]:
        """Let nobody write in the meantime."""
        with closing(sqlite3.connect(self.pair.backend.spec.directory / "var/ballast.db", timeout=60)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.rollback()


@dataclass
class Doomed:
    """A conversation whose first turn is done and whose second is to be killed."""

    client: httpx2.AsyncClient
    model: FakeModelControl
    mortal: Mortal
    conversation: str
    bound: Body

    async def second(self) -> Body:
        """Start the second turn."""
        return await turn(self.client, "Two?", conversation=self.conversation, background=True)

    async def revived(self, victim: RunningService, second: Body | None = None) -> RecordedRequest:
        """Start again what was killed, wait for the second turn, and return the request of the third one."""
        victim.kill()
        victim.start()
        await asyncio.to_thread(victim.wait_ready)
        while (await self.client.get("/v1/models")).status_code != 200:
            continue
        if second is not None:
            await self.ended(second)
        await turn(self.client, "Three?", conversation=self.conversation)
        assert not lines_of(self.mortal.pair.backend, event="Prompt drift")
        return asking(await self.model.requests(), "Three?")

    async def ended(self, response: Body) -> Body:
        """Wait for the end of a response and return it."""
        path = f"/v1/responses/{response['id']}"
        await self.client.get(f"{path}?stream=true")
        return (await self.client.get(path)).json()

    async def twin(self, *words: str) -> RecordedRequest:
        """Say these words in another conversation that nobody kills, and return its last request."""
        await self.model.reset()
        first = await turn(self.client, "One?", **self.bound)
        for asked in words:
            await self.model.script(Reply(text=("Two.",)), when="Two?")
            await turn(self.client, asked, conversation=first["conversation"]["id"])
        return (await self.model.requests())[-1]


@pytest.fixture(scope="module")
def mortal(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Mortal:
    port = free_port()
    options = PairOptions(chat_shell={"CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{port}"})
    return Mortal(start_pair(launch_for_module, tmp_path_factory.mktemp("mortal"), options), port)


@pytest.fixture
async def doomed(mortal: Mortal) -> AsyncIterator[Doomed]:
    async with mortal.pair.control() as model, bare_client(mortal.pair, "survivor") as client:
        await model.reset()
        base_id = await new_base(client, "Cellar")
        bound = {"tools": [file_search(base_id)], "instructions": "Be brief."}
        first = await turn(client, "One?", **bound)
        yield Doomed(client, model, mortal, first["conversation"]["id"], bound)


BOTH = pytest.mark.parametrize("name", ["backend", "chat_shell"])


async def test_before_the_turn_is_stored(doomed: Doomed) -> None:
    backend = doomed.mortal.pair.backend
    with doomed.mortal.locked_database():
        second = asyncio.create_task(doomed.second())
        for _ in range(3):  # the loop that takes these has taken the turn too, and its writer waits for the lock
            await doomed.client.get(f"/v1/conversations/{doomed.conversation}")
        assert not second.done()
        backend.kill()
        with pytest.raises(httpx2.TransportError):
            await second
    assert neutral(await doomed.revived(backend)) == neutral(await doomed.twin("Three?"))


@BOTH
async def test_between_storing_and_sending(doomed: Doomed, name: str) -> None:
    """chat_shell stands still: the turn is stored, and nothing of it has reached the model."""
    victim, chat_shell = doomed.mortal.victim(name), doomed.mortal.pair.chat_shell
    if name == "backend":
        await doomed.model.script(Reply(text=("Two.",)), when="Two?")
    chat_shell.send(signal.SIGSTOP)
    second = await doomed.second()
    assert len(await doomed.model.requests()) == 1
    victim.kill()
    chat_shell.send(signal.SIGCONT)
    third = await doomed.revived(victim, second)
    is_continued = name == "backend"
    assert (await doomed.ended(second))["status"] == ("completed" if is_continued else "failed")
    assert neutral(third) == neutral(await doomed.twin(*("Two?",) * is_continued, "Three?"))


@BOTH
async def test_while_the_model_streams(doomed: Doomed, name: str) -> None:
    """What was said and kept is what the model said: the request goes on behind it."""
    await doomed.model.script(HALF, when="Go on")
    victim = doomed.mortal.victim(name)
    async with half_a_turn(doomed.client, doomed.conversation) as half:
        victim.kill()
        with suppress(httpx2.TransportError):
            assert [event async for event in half.rest]
    third = await doomed.revived(victim)
    first, second, *_ = await doomed.model.requests()
    check_never_moves([first, second, third])
    said, asked = added(second, third)
    assert (said, asked["role"]) == ({"role": "assistant", "content": "Half an "}, "user")


@BOTH
async def test_between_a_call_and_its_result(doomed: Doomed, name: str) -> None:
    victim = doomed.mortal.victim(name)
    await doomed.model.script(Reply(tool_calls=(SEARCH,)), when="Two?")
    async with held_calls(doomed.mortal.tool_port) as arrived:
        second = await doomed.second()
        await arrived.wait()
        while not (await doomed.client.get(f"/v1/responses/{second['id']}")).json()["output"]:
            continue
        victim.kill()
    third = await doomed.revived(victim, second)
    assert (await doomed.ended(second))["status"] == ("incomplete" if name == "backend" else "failed")
    assert neutral(third) == neutral(await doomed.twin("Three?"))


@BOTH
async def test_behind_the_results_before_the_next_call(doomed: Doomed, name: str) -> None:
    """The complete pair stays, whoever dies while the model has the next call before it."""
    victim = doomed.mortal.victim(name)
    await doomed.model.script(Reply(tool_calls=(ANSWERED_AT_ONCE,)), AT_ONCE, when="Two?")
    second = await doomed.second()
    await doomed.model.wait_held()
    wait_for_the_pair(doomed)
    victim.kill()
    third = await doomed.revived(victim, second)
    is_continued = name == "backend"
    assert (await doomed.ended(second))["status"] == ("completed" if is_continued else "failed")
    first, called, answered, *others = await doomed.model.requests()
    check_never_moves([first, called, answered, third])
    check_pairs(messages_in(third))
    roles = [message["role"] for message in added(answered, third)]
    assert roles == (["assistant", "user"] if is_continued else ["user"])
    assert not is_continued or others[0].body == answered.body


async def test_results_that_could_not_be_kept_are_lost_with_their_call(doomed: Doomed) -> None:
    """chat_shell does not wait for the log: the model had its second call, of which no byte is left; it begins anew."""
    backend = doomed.mortal.pair.backend
    held = Reply(tool_calls=(ANSWERED_AT_ONCE,), hold_after=0)
    await doomed.model.script(held, AT_ONCE, Reply(text=("Two.",)), when="Two?")
    second = await doomed.second()
    await doomed.model.wait_held()
    with doomed.mortal.locked_database():
        await doomed.model.release()
        await doomed.model.wait_requests(3)
        backend.kill()
    assert neutral(await doomed.revived(backend, second)) == neutral(await doomed.twin("Two?", "Three?"))


@BOTH
async def test_behind_the_answer_before_it_is_stored(doomed: Doomed, name: str) -> None:
    """With the backend the answer dies, and is asked for again; without chat_shell it is there, told or not."""
    victim = doomed.mortal.victim(name)
    await doomed.model.script(AT_ONCE, Reply(text=("Two.",)), when="Two?")
    second = await doomed.second()
    await doomed.model.wait_held()
    with doomed.mortal.locked_database():
        async with doomed.client.stream("GET", f"/v1/responses/{second['id']}?stream=true") as answer:
            events = live_events(answer)
            await doomed.model.release()
            async for event in events:
                if event["type"] == "response.output_text.done":
                    break
            victim.kill()
    third = await doomed.revived(victim, second)
    assert neutral(third) == neutral(await doomed.twin("Two?", "Three?"))


def wait_for_the_pair(doomed: Doomed) -> None:
    """Return once the call and its result are in the log."""
    path = doomed.mortal.pair.backend.spec.directory / "var/ballast.db"
    count = "SELECT count(*) FROM log_entry WHERE conversation_id = ? AND kind = 'tool_result'"
    with closing(sqlite3.connect(path)) as connection:
        while connection.execute(count, (doomed.conversation,)).fetchone() != (1,):
            continue
