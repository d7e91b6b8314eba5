"""What a running turn hands out for the log, however its events arrive."""

from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.conversation_log import EntryKind, find_pending_calls, messages_of
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.turn_log import TurnLog
from shared.models.events import MessagesAdded, ModelCallStarted
from shared.models.messages import AddedMessage, AssistantMessage, ToolCall, ToolMessage
from shared.prompts.message_order import reminder_text
from tests.unit.backend.turns.samples import NOW


def called(call_id: str) -> AssistantMessage:
    return AssistantMessage(text="", tool_calls=(ToolCall(call_id=call_id, name="look", arguments="{}"),))


def rounds(count: int) -> list[AddedMessage]:
    """Make rounds of one call each with its result."""
    return [part for n in range(count) for part in (called(f"c{n}"), ToolMessage(call_id=f"c{n}", content="ok"))]


def test_a_pair_does_not_wait_for_what_stands_behind_it() -> None:
    log = TurnLog("resp_1", 0, 5)
    log.feed(MessagesAdded(messages=(*rounds(1), called("next"))))
    assert messages_of(log.complete_exchange(NOW)) == tuple(rounds(1))
    assert log.length == 7
    assert log.complete_exchange(NOW) == ()
    log.feed(MessagesAdded(messages=(ToolMessage(call_id="next", content="ok"),)))
    assert [entry.position for entry in log.complete_exchange(NOW)] == [7, 8]


@given(st.integers(0, 4), st.lists(st.integers(1, 3)), st.booleans())
def test_however_events_are_joined_all_is_handed_out_once_and_in_order(
    count: int, sizes: list[int], ends_with_call: bool
) -> None:
    messages = [*rounds(count), *([called("last")] if ends_with_call else [])]
    log, handed = TurnLog("resp_1", 0, 0), list[AddedMessage]()
    left = list(messages)
    for size in [*sizes, len(messages) or 1]:
        piece, left = left[:size], left[size:]
        log.feed(MessagesAdded(messages=tuple(piece)))
        handed += [m for m in messages_of(log.complete_exchange(NOW)) if isinstance(m, AssistantMessage | ToolMessage)]
        assert not find_pending_calls(handed)
        assert handed == messages[: len(handed)]
    assert handed == rounds(count)


REMINDER = reminder_text(("Be kind.",))


def test_a_reminder_that_stays_is_handed_out_before_its_call_ends() -> None:
    agent = AgentRef(name="helper", id="agent_1")
    log = TurnLog("resp_1", 0, 5, reminded_of=(agent,))
    log.feed(ModelCallStarted(call=1, reminder=REMINDER, reminder_stays=True))
    (entry,) = log.complete_exchange(NOW)
    assert (entry.kind, entry.position, entry.agents) == (EntryKind.REMINDER, 5, frozenset([agent]))
    log.feed(MessagesAdded(messages=tuple(rounds(1))))
    assert [entry.agents for entry in log.complete_exchange(NOW)] == [frozenset(), frozenset()]


def test_one_that_moves_is_not() -> None:
    log = TurnLog("resp_1", 0, 5)
    log.feed(ModelCallStarted(call=1, reminder=REMINDER))
    assert log.complete_exchange(NOW) == ()


def test_a_turn_that_says_nothing_behind_its_reminder_is_void() -> None:
    for is_handed_out in (True, False):
        log = TurnLog("resp_1", 0, 5)
        log.feed(ModelCallStarted(call=1, reminder=REMINDER, reminder_stays=True))
        before = log.complete_exchange(NOW) if is_handed_out else ()
        kinds = [entry.kind for entry in (*before, *log.end(NOW, is_success=False))]
        assert kinds == [EntryKind.REMINDER, EntryKind.VOID]
