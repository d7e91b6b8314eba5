"""Within an epoch no byte moves that was sent, whatever happens in between."""

from collections.abc import Sequence
from itertools import takewhile

from hypothesis import given, note, settings
from hypothesis import strategies as st

from backend.conversations.domain.placed_blocks import ANCHORED, CLASSIC, PlacedBlocks, Placement
from shared.models.messages import Message, SystemMessage, ToolMessage, UserMessage
from tests.bench.cache.generator import SMALL, conversation
from tests.bench.cache.layouts import DURABLE, TAIL, Layout
from tests.bench.cache.playing import Call, Played, play
from tests.examples import of_many
from tests.fakes.chat_shell_talking import check_pairs

seeds = st.integers(0, 2**32)


@settings(max_examples=of_many(2_000, few=100), database=None)
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


@settings(max_examples=of_many(500), database=None)
@given(seeds)
def test_classic_moves_the_words_of_its_agent_and_nothing_else(seed: int):
    note(f"seed {seed}")
    made = conversation(seed, SMALL, CLASSIC)
    placed = {turn.id: turn.placed for turn in made.turns}
    played = play(made, DURABLE)
    for call in played.calls:
        before = call_before(played, call)
        if before is not None and before.epoch == call.epoch:
            kept = declared_part(before, placed[before.turn_id])
            assert declared_part(call, placed[call.turn_id])[: len(kept)] == kept
            assert call.sent.parts[0] == before.sent.parts[0]
        assert_placement(call.messages)


def declared_part(call: Call, placed: PlacedBlocks) -> list[Message]:
    """Return the messages above the words of the agent; results, which later turns elide, are equal there."""
    words = [text for text in (placed.instructions, placed.project_files) if text]
    kept = takewhile(lambda message: not says_any(message, words), call.messages)
    return [
        ToolMessage(call_id=message.call_id, content="") if isinstance(message, ToolMessage) else message
        for message in kept
    ]


def says_any(message: Message, words: Sequence[str]) -> bool:
    return isinstance(message, UserMessage) and any(text in str(message.content) for text in words)


def test_classic_moves_something():
    assert moves(DURABLE, CLASSIC) > 0


@settings(max_examples=of_many(100), database=None)
@given(seeds)
def test_a_tail_is_placed_as_well(seed: int):
    for call in play(conversation(seed, SMALL), TAIL).calls:
        assert_placement(call.messages)


def test_a_moved_byte_would_be_seen():
    assert moves(TAIL) > 0
    assert moves(DURABLE) == 0


def moves(layout: Layout, placement: Placement = ANCHORED) -> int:
    """Count the calls of some conversations that do not begin with the call before in their epoch."""
    count = 0
    for seed in range(20):
        played = play(conversation(seed, SMALL, placement), layout)
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
    check_pairs(messages)
    last = messages[-1]
    assert isinstance(last, ToolMessage) or (isinstance(last, UserMessage) and "<time>" in str(last.content))
