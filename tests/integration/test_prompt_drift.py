"""Within an epoch no byte moves that was sent, whatever happens in between."""

from collections.abc import Sequence

from hypothesis import given, note, settings
from hypothesis import strategies as st

from shared.models.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tests.bench.cache.generator import SMALL, conversation
from tests.bench.cache.layouts import DURABLE, TAIL, Layout
from tests.bench.cache.playing import Call, Played, play

seeds = st.integers(0, 2**32)


@settings(max_examples=2_000, database=None)
@given(seeds)
def test_nothing_drifts(seed: int):
    note(f"seed {seed}")
    played = play(conversation(seed, SMALL), DURABLE)

    for call in played.calls:
        before = call_before(played, call)
        if before is not None and before.epoch == call.epoch:
            assert is_beginning(before, call)
            assert call.sent.parts[:2] == before.sent.parts[:2]
        assert_placement(call.messages)


@settings(max_examples=100, database=None)
@given(seeds)
def test_a_tail_is_placed_as_well(seed: int):
    for call in play(conversation(seed, SMALL), TAIL).calls:
        assert_placement(call.messages)


def test_a_moved_byte_would_be_seen():
    assert moves(TAIL) > 0
    assert moves(DURABLE) == 0


def moves(layout: Layout) -> int:
    """Count the calls of some conversations that do not begin with the call before in their epoch."""
    count = 0
    for seed in range(20):
        played = play(conversation(seed, SMALL), layout)
        for call in played.calls:
            before = call_before(played, call)
            count += before is not None and before.epoch == call.epoch and not is_beginning(before, call)
    return count


def call_before(played: Played, call: Call) -> Call | None:
    return None if call.before is None else played.calls[call.before]


def is_beginning(before: Call, call: Call) -> bool:
    return call.sent.parts[: len(before.sent.parts)] == before.sent.parts


def assert_placement(messages: Sequence[Message]) -> None:
    """System message first and alone; results right behind their calls, in call order; a user or a result last."""
    assert [isinstance(message, SystemMessage) for message in messages] == [True] + [False] * (len(messages) - 1)
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.call_id == waiting.pop(0)
        else:
            assert not waiting
        if isinstance(message, AssistantMessage):
            waiting = [call.call_id for call in message.tool_calls]
    last = messages[-1]
    assert isinstance(last, ToolMessage) or (isinstance(last, UserMessage) and "<time>" in str(last.content))
