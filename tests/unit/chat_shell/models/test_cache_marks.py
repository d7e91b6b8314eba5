"""Cache marks: few, in order, where the next request will look."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.anthropic_messages.encoder import (
    LOOKBACK_BLOCKS,
    MAX_MARKS,
    STRIDE_BLOCKS,
    CacheMarks,
    block_count,
    cache_marks,
)
from shared.models.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SYSTEM = SystemMessage(content="S")
USER = UserMessage(content="U")
ANSWER = AssistantMessage(text="A")


def tool_round(calls: int, text: str = "") -> list[Message]:
    ids = [f"c{number}" for number in range(calls)]
    asked = tuple(ToolCall(call_id=call_id, name="look", arguments="{}") for call_id in ids)
    return [
        AssistantMessage(text=text, tool_calls=asked),
        *(ToolMessage(call_id=call_id, content="seen") for call_id in ids),
    ]


def test_header_history_and_tail():
    marks = cache_marks((SYSTEM, USER, ANSWER, USER), stored=3, has_tools=True)

    assert marks == CacheMarks(on_header=True, messages=(2, 3))


def test_history_ends_at_its_last_answer_as_what_follows_may_move():
    marks = cache_marks((SYSTEM, USER, ANSWER, USER, USER, USER), stored=5, has_tools=True)

    assert marks == CacheMarks(on_header=True, messages=(2, 5))


def test_a_first_turn_has_no_history():
    assert cache_marks((SYSTEM, USER), stored=1, has_tools=False) == CacheMarks(on_header=True, messages=(1,))


@pytest.mark.parametrize("has_tools", [True, False])
def test_without_a_system_message_the_tools_alone_are_the_header(has_tools: bool):
    marks = cache_marks((USER, ANSWER, USER), stored=2, has_tools=has_tools)

    assert marks == CacheMarks(on_header=has_tools, messages=(1, 2))


def test_no_message_no_mark():
    assert cache_marks((), stored=0, has_tools=False) == CacheMarks(on_header=False, messages=())


def test_a_long_turn_is_marked_on_its_way():
    turn = (USER, *tool_round(13))  # 1 + 13 + 13 blocks; 15 stand behind the second result

    assert cache_marks((SYSTEM, *turn), stored=1, has_tools=True).messages == (3, 15)


def test_of_many_marks_the_newest_stay():
    turn = [USER, *(message for _ in range(12) for message in tool_round(4))]
    marks = cache_marks((SYSTEM, USER, ANSWER, *turn), stored=3, has_tools=True)

    assert len(marks.messages) == MAX_MARKS - 1
    assert marks.messages[-1] == 2 + len(turn)
    assert marks.messages[0] > 3


def test_blocks():
    assert block_count(USER) == block_count(ANSWER) == block_count(AssistantMessage(text="")) == 1
    assert block_count(tool_round(3)[0]) == 3
    assert block_count(tool_round(3, "Looking.")[0]) == 4
    assert block_count(UserMessage(content=(TextPart(text="a"), TextPart(text="b")))) == 2


rounds = st.lists(st.integers(1, 8), max_size=12)


@given(rounds, st.integers(0, 6), st.booleans(), st.booleans())
def test_marks_are_few_ascend_and_end_at_the_tail(sizes: list[int], turns: int, has_system: bool, has_tools: bool):
    head: list[Message] = [SYSTEM] if has_system else []
    stored = [*head, *([USER, ANSWER] * turns)]
    messages = [*stored, USER, *(message for size in sizes for message in tool_round(size))]

    marks = cache_marks(messages, len(stored), has_tools=has_tools)

    assert marks.on_header is (has_system or has_tools)
    assert len(marks.messages) + marks.on_header <= MAX_MARKS
    assert list(marks.messages) == sorted(set(marks.messages))
    assert marks.messages[-1] == len(messages) - 1
    assert not has_system or 0 not in marks.messages


@given(rounds, st.integers(1, 16))
def test_each_call_finds_the_end_of_the_one_before(sizes: list[int], calls_side_by_side: int):
    before = [SYSTEM, USER, ANSWER, USER, *(message for size in sizes for message in tool_round(size))]
    messages = [*before, *tool_round(calls_side_by_side)]
    written = cache_marks(before, 3, has_tools=True).messages[-1]

    marks = cache_marks(messages, 3, has_tools=True)

    distances = [sum(map(block_count, messages[written + 1 : mark + 1])) for mark in marks.messages if mark >= written]
    assert min(distances) <= LOOKBACK_BLOCKS


@given(rounds)
def test_no_stride_of_a_turn_is_longer_than_it_may_be(sizes: list[int]):
    messages = [SYSTEM, USER, *(message for size in sizes for message in tool_round(size))]

    places = cache_marks(messages, 1, has_tools=True).messages

    for earlier, later in pairwise(places):
        assert sum(map(block_count, messages[earlier + 1 : later + 1])) <= STRIDE_BLOCKS
