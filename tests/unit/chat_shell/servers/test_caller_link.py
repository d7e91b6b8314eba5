"""What a caller of `Connect` is sent: frames of many turns in one message, each bounded, none held up by others."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from chat_shell.servers.grpc.caller_link import MESSAGE_BYTES, SHARE_BYTES
from chat_shell.servers.grpc.linked_turn import FIRST_CREDIT_BYTES
from chat_shell.turns.services.event_buffer import MAX_EVENTS
from protos.execution.v1 import chat_shell_pb2
from shared.errors import InvalidRequest
from shared.message_size import STREAM_MESSAGE_BYTES
from shared.models.events import (
    ExecutionEvent,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TextLogprobs,
)
from shared.models.execution import ExecutionRequest
from tests.fakes.chat_shell_caller import events_in, linked, start_of
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import ScriptedRunner, saying, waiting_after
from tests.fakes.chat_shell_servers import shell_with
from tests.patience import until

STARTED = ModelCallStarted(call=1)


def bytes_of(message: chat_shell_pb2.FromShell, of: int | None = None) -> int:
    frames = [frame for frame in message.frames if of in (None, frame.turn)]
    return sum(len(event) for frame in frames for event in (*frame.events, frame.piece))


async def test_turns_that_are_ready_together_go_in_one_message() -> None:
    shell = shell_with(ScriptedRunner(saying(STARTED, FINISHED)))
    async with linked(shell) as (_, caller):
        caller.say(*map(start_of, (1, 2, 3)))
        message = await caller.message(1)
    assert [(frame.turn, len(frame.events), frame.is_last) for frame in message.frames] == [
        (number, 2, True) for number in (1, 2, 3)
    ]
    assert len(caller.got) == 2


async def test_what_comes_while_a_message_is_on_its_way_is_joined_in_the_next_one() -> None:
    shell = shell_with(ScriptedRunner(saying(STARTED, FINISHED)))
    async with linked(shell) as (_, caller):
        caller.gate.clear()
        caller.say(start_of(1))
        await caller.message(1)
        for number in (2, 3):
            caller.say(start_of(number))
            await until(lambda number=number: len(shell.runner.requests) == number)
        assert len(caller.got) == 2
        caller.gate.set()
        message = await caller.message(2)
    assert [frame.turn for frame in message.frames] == [2, 3]


async def test_the_first_event_of_a_turn_waits_for_nothing() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED, TextDelta(text="x"))))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1))
        (frame,) = (await caller.message(1)).frames
    assert [event.WhichOneof("event") for event in events_in([frame])] == ["model_call_started", "text_delta"]


class Said:
    """Says the first events, and the others once `may_go_on` is set; then it waits for ever."""

    def __init__(self, first: Sequence[ExecutionEvent], others: Sequence[ExecutionEvent]) -> None:
        self.may_go_on = asyncio.Event()
        self.others = others
        self.shell = shell_with(ScriptedRunner(self._script))
        self._first = first

    async def _script(self, request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        for event in (STARTED, *self._first):
            yield event
        await self.may_go_on.wait()
        for event in self.others if request.request_id != "other" else ():
            yield event
        await asyncio.Event().wait()

    async def go_on(self) -> None:
        """Say the others, and let this loop do what follows from them."""
        before = self.shell.runner.produced
        self.may_go_on.set()
        await until(lambda: self.shell.runner.produced == before + len(self.others))
        for _ in range(10):
            await asyncio.sleep(0)


TEXT, LOGPROBS, NEVER_SECONDS = TextDelta(text="x"), TextLogprobs(tokens="[]"), 3600.0


@pytest.mark.parametrize("said", [(TEXT,), (TEXT, LOGPROBS)], ids=["text", "text with log probabilities"])
async def test_further_deltas_wait_for_what_else_is_sent(said: tuple[ExecutionEvent, ...]) -> None:
    deltas = Said(said, (*said, *said))
    other = full_request().model_copy(update={"request_id": "other"})
    async with linked(deltas.shell, NEVER_SECONDS) as (_, caller):
        caller.say(start_of(1))
        await caller.message(1)
        await deltas.go_on()
        assert len(caller.got) == 2
        caller.say(start_of(2, other))
        frames = (await caller.message(2)).frames
    assert [frame.turn for frame in frames] == [1, 2]
    assert "".join(event.text_delta for event in events_in([frames[0]])) == "xx"


async def test_further_deltas_wait_no_longer_than_a_round() -> None:
    deltas = Said((TEXT,), (TEXT,))
    async with linked(deltas.shell) as (_, caller):
        caller.say(start_of(1))
        await caller.message(1)
        deltas.may_go_on.set()
        (frame,) = (await caller.message(2)).frames
    assert [event.text_delta for event in events_in([frame])] == ["x"]


@pytest.mark.parametrize(
    "event", [TEXT, RefusalDelta(text="no"), ModelCallStarted(call=2)], ids=["first of its kind", "refusal", "no delta"]
)
async def test_nothing_else_waits(event: ExecutionEvent) -> None:
    deltas = Said((ReasoningDelta(text="r"),), (event,))
    async with linked(deltas.shell, NEVER_SECONDS) as (_, caller):
        caller.say(start_of(1))
        await caller.message(1)
        deltas.may_go_on.set()
        assert len(events_in(list((await caller.message(2)).frames))) == 1


async def test_a_full_buffer_waits_for_no_round() -> None:
    deltas = Said((TEXT,), (TEXT,) * 2 * (MAX_EVENTS + 1))
    async with linked(deltas.shell, NEVER_SECONDS) as (_, caller):
        caller.say(start_of(1))
        await caller.message(1)
        await deltas.go_on()
        events = events_in([frame for message in caller.got[2:] for frame in message.frames])
    assert "".join(event.text_delta for event in events) == "x" * 2 * (MAX_EVENTS + 1)


async def test_a_long_event_goes_in_pieces_between_which_others_have_their_say() -> None:
    texts = {"long": "词" * 20_000, "short": "x"}

    async def script(request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        yield TextDelta(text=texts[request.request_id])
        yield FINISHED

    def asked(turn: int, kind: str) -> chat_shell_pb2.TurnCommand:
        return start_of(turn, full_request().model_copy(update={"request_id": kind}))

    async with linked(shell_with(ScriptedRunner(script))) as (_, caller):
        caller.say(asked(1, "long"), asked(2, "short"))
        long, short = await caller.frames_of(1), await caller.frames_of(2)
    assert [event.text_delta for event in events_in(long)] == [texts["long"], ""]
    assert [event.text_delta for event in events_in(short)] == ["x", ""]
    first = caller.got[1]
    assert [frame.turn for frame in first.frames] == [1, 2]
    assert len(first.frames[0].piece) == SHARE_BYTES
    assert first.frames[1].is_last


async def test_a_message_has_a_bound_and_the_turns_take_turns() -> None:
    text = TextDelta(text="x" * (FIRST_CREDIT_BYTES // 2))
    shell = shell_with(ScriptedRunner(saying(text, FINISHED)))
    count = 3 * MESSAGE_BYTES // SHARE_BYTES
    async with linked(shell) as (_, caller):
        caller.gate.clear()
        caller.say(start_of(0))
        await caller.message(1)
        caller.say(*map(start_of, range(1, count + 1)))
        await until(lambda: shell.runner.produced == 2 * (count + 1))
        caller.gate.set()
        for number in range(count + 1):
            assert events_in(await caller.frames_of(number))[0].text_delta == text.text
    assert max(map(bytes_of, caller.got)) <= MESSAGE_BYTES + SHARE_BYTES
    order = [frame.turn for message in caller.got[2:] for frame in message.frames if frame.turn]
    assert order[:count] == list(range(1, count + 1))


async def test_a_turn_whose_caller_reads_nothing_waits_alone() -> None:
    piece = TextDelta(text="x" * 1_000)

    async def script(request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        while request.request_id == "endless":
            yield piece
        yield FINISHED

    endless = full_request().model_copy(update={"request_id": "endless"})
    shell = shell_with(ScriptedRunner(script))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1, endless))
        await until(lambda: sum(map(bytes_of, caller.got)) == FIRST_CREDIT_BYTES)
        for number in range(2, 20):
            caller.say(start_of(number))
            await caller.frames_of(number)
        produced = shell.runner.produced
        assert sum(bytes_of(message, of=1) for message in caller.got) == FIRST_CREDIT_BYTES
        caller.say(chat_shell_pb2.TurnCommand(turn=1, credit_bytes=FIRST_CREDIT_BYTES))
        await until(lambda: shell.runner.produced > produced)
        caller.say(chat_shell_pb2.TurnCommand(turn=1, cancel=chat_shell_pb2.CancelTurn()))
        await shell.admission.wait_until_idle()
    assert shell.runner.live == 0
    assert shell.bounds.held_bytes == 0


async def test_a_request_that_is_none_ends_its_turn_alone() -> None:
    wrong = chat_shell_pb2.TurnCommand(turn=1, start=chat_shell_pb2.StartTurn(request=b"\xff\xff\xff"))
    async with linked(shell_with(ScriptedRunner(saying(STARTED, FINISHED)))) as (_, caller):
        caller.say(wrong, start_of(2))
        (refused,), other = await caller.frames_of(1), await caller.frames_of(2)
    assert refused.refusal.type == "InvalidRequest"
    assert len(events_in(other)) == 2


async def test_an_event_that_cannot_be_written_ends_its_turn_alone() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED, TextDelta(text="\ud800"))))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1))
        frames = await caller.frames_of(1)
        await shell.admission.wait_until_idle()
    assert frames[-1].refusal.type == "InternalError"
    assert shell.runner.live == 0


async def test_a_turn_ends_when_its_caller_waits_no_longer() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1, left_seconds=0.05))
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()


async def test_a_caller_who_goes_as_they_begin_a_turn_has_no_model_called() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1))
        caller.hang_up()
    assert not shell.runner.requests


async def test_the_end_of_the_stream_cancels_its_turns() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1), start_of(2))
        await until(lambda: shell.runner.live == 2)
    assert (shell.runner.live, shell.admission.running, shell.bounds.held_bytes) == (0, 0, 0)


async def test_a_server_that_stops_cancels_the_turns_of_the_stream_and_breaks_nothing() -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with linked(shell) as (_, caller):
        caller.say(start_of(1))
        await until(lambda: shell.runner.live == 1)
        caller.stop_server()
    assert (shell.runner.live, shell.admission.running, shell.bounds.held_bytes) == (0, 0, 0)


async def test_a_caller_that_has_gone_breaks_nothing() -> None:
    shell = shell_with(ScriptedRunner(saying(STARTED, FINISHED)))
    async with linked(shell) as (_, caller):
        caller.has_gone = True
        caller.say(start_of(1))
        await shell.admission.wait_until_idle()
    assert len(caller.got) == 1


async def test_a_draining_shell_says_so_and_refuses_turns() -> None:
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    async with linked(shell) as (link, caller):
        shell.admission.close()
        link.send_away()
        assert (await caller.message(1)).HasField("go_away")
        caller.say(start_of(1))
        (refused,) = await caller.frames_of(1)
    assert refused.refusal.type == "Draining"


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xff\xff",
        bytes(STREAM_MESSAGE_BYTES + 1),
        chat_shell_pb2.ToShell(commands=[start_of(1), start_of(1)]).SerializeToString(),
    ],
    ids=["no message", "too long", "a number twice"],
)
async def test_a_caller_who_does_not_keep_to_the_contract_loses_the_stream(body: bytes) -> None:
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    with pytest.RaisesGroup(InvalidRequest):
        async with linked(shell) as (_, caller):
            caller.say_bytes(body)
            await asyncio.Event().wait()
    assert shell.runner.live == 0
