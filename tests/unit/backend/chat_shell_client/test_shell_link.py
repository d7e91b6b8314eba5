"""A stream to one replica as its turns see it: what is said and read, without gRPC."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from grpc.aio import EOF

from backend.chat_shell_client.refusals import BROKEN_OFF, UNREACHABLE, ReplicaDraining
from backend.chat_shell_client.shell_link import CREDIT_BYTES, SILENT_BEATS, ShellLink
from protos.execution.v1 import chat_shell_pb2, events_pb2
from shared.errors import (
    BallastError,
    ChatShellSilent,
    ChatShellUnavailable,
    DeadlineExceeded,
    PayloadTooLarge,
    UnknownModel,
)
from shared.message_size import SHORT_MESSAGE_BYTES, STREAM_MESSAGE_BYTES
from shared.models.events import ExecutionEvent, ModelCallStarted, TextDelta
from shared.wire import event_to_proto
from tests.fakes.chat_shell_events import FINISHED
from tests.patience import PATIENCE_SECONDS, until

MAX_BYTES = 1_000_000
STARTED = ModelCallStarted(call=1)


class Replica:
    """Implements the part of gRPC's call that a link needs; a write ends when `gate` is set."""

    def __init__(self) -> None:
        self.heard: list[list[chat_shell_pb2.TurnCommand]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_cancelled = False
        self._said: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, *frames: chat_shell_pb2.TurnFrame) -> None:
        self._said.put_nowait(chat_shell_pb2.FromShell(frames=frames))

    def send_away(self) -> None:
        self._said.put_nowait(chat_shell_pb2.FromShell(go_away=chat_shell_pb2.GoAway()))

    def beat(self) -> None:
        self._said.put_nowait(chat_shell_pb2.FromShell(heartbeat=chat_shell_pb2.Heartbeat()))

    def hang_up(self) -> None:
        self._said.put_nowait(EOF)

    async def read(self) -> Any:
        return await self._said.get()

    async def write(self, message: chat_shell_pb2.ToShell) -> None:
        self.heard.append(list(message.commands))
        await self.gate.wait()

    async def done_writing(self) -> None:
        self.hang_up()

    def cancel(self) -> None:
        self.is_cancelled = True


@asynccontextmanager
async def linked(heartbeat_milliseconds: int = 0) -> AsyncGenerator[tuple[ShellLink, Replica]]:
    replica = Replica()
    hello = chat_shell_pb2.Hello(replica="one", heartbeat_milliseconds=heartbeat_milliseconds)
    link = ShellLink(cast(Any, replica), cast(Any, None), hello, MAX_BYTES)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(link.carry())
        yield link, replica
        replica.hang_up()
    assert replica.is_cancelled


def frame(turn: int, *events: ExecutionEvent, **fields: Any) -> chat_shell_pb2.TurnFrame:
    encoded = [event_to_proto(event).SerializeToString() for event in events]
    return chat_shell_pb2.TurnFrame(turn=turn, events=encoded, **fields)


def kinds_of(commands: list[chat_shell_pb2.TurnCommand]) -> list[tuple[int, str | None]]:
    return [(command.turn, command.WhichOneof("command")) for command in commands]


async def test_what_is_said_in_one_tick_goes_in_one_message_and_what_comes_meanwhile_in_the_next() -> None:
    async with linked() as (link, replica):
        replica.gate.clear()
        turns = [link.begin(b"x", 60.0) for _ in range(3)]
        await until(lambda: bool(replica.heard))
        await turns[0].aclose()
        link.begin(b"y", None)
        await turns[1].aclose()
        replica.gate.set()
        await until(lambda: len(replica.heard) == 2)
    assert [kinds_of(commands) for commands in replica.heard] == [
        [(1, "start"), (2, "start"), (3, "start")],
        [(1, "cancel"), (4, "start"), (2, "cancel")],
    ]
    assert [command.start.HasField("left_seconds") for command in replica.heard[0]] == [True] * 3
    assert not replica.heard[1][1].start.HasField("left_seconds")


async def test_a_message_holds_no_more_than_a_replica_takes() -> None:
    async with linked() as (link, replica):
        for _ in range(5):
            link.begin(bytes(SHORT_MESSAGE_BYTES), None)
        await until(lambda: sum(map(len, replica.heard)) == 5)
    assert [chat_shell_pb2.ToShell(commands=said).ByteSize() <= STREAM_MESSAGE_BYTES for said in replica.heard]
    assert list(map(len, replica.heard)) == [1] * 5


async def test_events_go_to_their_turns_and_what_comes_for_a_turn_that_was_left_goes_nowhere() -> None:
    async with linked() as (link, replica):
        first, second, left = (link.begin(b"x", None) for _ in range(3))
        await left.aclose()
        replica.say(frame(3, STARTED), frame(2, STARTED), frame(1, FINISHED, is_last=True), frame(2, FINISHED))
        assert await anext(first) == (FINISHED,)
        assert [batch async for batch in first] == []
        assert await anext(second) == (STARTED, FINISHED)
        assert link.running == 1
        await first.aclose()
        await second.aclose()
        await until(lambda: sum(map(len, replica.heard)) == 5)
    assert kinds_of(replica.heard[-1])[-1] == (2, "cancel")
    assert (1, "cancel") not in [kind for commands in replica.heard for kind in kinds_of(commands)]


async def test_what_was_read_is_credited_and_what_was_not_read_is_not() -> None:
    half = TextDelta(text="x" * (CREDIT_BYTES // 2))
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        replica.say(frame(1, half, half))
        await until(lambda: len(replica.heard) == 1)
        assert await anext(turn) == (half, half)
        await until(lambda: len(replica.heard) == 2)
    (credit,) = replica.heard[1]
    assert credit.credit_bytes == sum(len(event) for event in frame(1, half, half).events)


async def test_pieces_become_an_event() -> None:
    encoded = event_to_proto(TextDelta(text="词" * 100)).SerializeToString()
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        replica.say(frame(1, STARTED, piece=encoded[:100]))
        assert await anext(turn) == (STARTED,)
        replica.say(frame(1, piece=encoded[100:200]))
        rest = chat_shell_pb2.TurnFrame(turn=1, events=[encoded[200:], *frame(1, FINISHED).events], is_last=True)
        replica.say(rest)
        assert await anext(turn) == (TextDelta(text="词" * 100), FINISHED)


async def test_an_event_without_end_ends_its_turn() -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        for _ in range(11):
            replica.say(frame(1, piece=bytes(MAX_BYTES // 10)))
        with pytest.raises(PayloadTooLarge):
            await anext(turn)
        await turn.aclose()
        await until(lambda: kinds_of(replica.heard[-1])[-1] == (1, "cancel"))


@pytest.mark.parametrize(
    ("before", "message"), [((), UNREACHABLE), ((STARTED,), BROKEN_OFF)], ids=["not begun", "begun"]
)
async def test_the_end_of_the_stream_ends_its_turns(before: tuple[ExecutionEvent, ...], message: str) -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        if before:
            replica.say(frame(1, *before))
            assert await anext(turn) == before
        replica.hang_up()
        with pytest.raises(ChatShellUnavailable) as lost:
            await anext(turn)
    assert lost.value.message == message
    assert not link.takes_turns


@pytest.mark.parametrize(("kind", "raised"), [("Draining", ReplicaDraining), ("UnknownModel", UnknownModel)])
async def test_a_refusal_is_raised_and_that_of_a_replica_that_goes_is_the_last_one(
    kind: str, raised: type[BallastError]
) -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        replica.say(frame(1, refusal=events_pb2.ErrorReport(type=kind, code="x", message="No."), is_last=True))
        with pytest.raises(raised):
            await anext(turn)
        assert link.takes_turns is (raised is not ReplicaDraining)


async def test_a_turn_that_takes_too_long_is_given_up() -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"x", 0.01)
        with pytest.raises(DeadlineExceeded):
            await anext(turn)
        await turn.aclose()
        await until(lambda: kinds_of(replica.heard[-1])[-1] == (1, "cancel"))


async def test_a_replica_that_goes_is_left_when_its_last_turn_has_ended() -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"x", None)
        replica.send_away()
        await until(lambda: not link.takes_turns)
        replica.say(frame(1, FINISHED, is_last=True))
        assert await anext(turn) == (FINISHED,)
        await until(lambda: replica.is_cancelled)


async def test_a_replica_that_says_nothing_any_more_loses_its_turns_behind_what_has_arrived() -> None:
    async with linked(heartbeat_milliseconds=10) as (link, replica):
        unbegun, begun = link.begin(b"one", None), link.begin(b"two", None)
        replica.say(frame(2, STARTED))
        for turn in (unbegun, begun):
            if turn is begun:
                assert await anext(turn) == (STARTED,)
            with pytest.raises(ChatShellSilent):
                await anext(turn)
        assert not link.takes_turns


async def test_a_replica_whose_heart_beats_may_bring_nothing_forth_for_long() -> None:
    async with linked(heartbeat_milliseconds=20) as (link, replica):
        turn = link.begin(b"one", None)
        for _ in range(5 * SILENT_BEATS):
            await asyncio.sleep(0.02)
            replica.beat()
        replica.say(frame(1, FINISHED, is_last=True))
        assert await anext(turn) == (FINISHED,)


async def test_a_replica_of_the_release_before_has_no_heartbeat_and_may_be_silent() -> None:
    async with linked() as (link, replica):
        turn = link.begin(b"one", None)
        await asyncio.sleep(0.1)
        replica.say(frame(1, FINISHED, is_last=True))
        assert await anext(turn) == (FINISHED,)


async def test_a_process_that_stands_still_itself_takes_no_replica_for_frozen() -> None:
    async with linked(heartbeat_milliseconds=20) as (link, replica):
        turn = link.begin(b"one", None)
        await asyncio.sleep(0)
        time.sleep(1)  # as a process that was stopped, which hears then what was said meanwhile
        replica.say(frame(1, FINISHED, is_last=True))
        assert await anext(turn) == (FINISHED,)
