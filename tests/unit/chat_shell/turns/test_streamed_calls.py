"""Which pieces of calls clients get: only of those that the end of the answer cannot change."""

from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.ports import CallFragment
from chat_shell.turns.domain.turn import MAX_CALLS_IN_ANSWER, ModelAnswered, TurnState, record
from chat_shell.turns.services.streamed_calls import StreamedCalls
from shared.models.events import FinishReason, Usage
from shared.models.messages import ToolCall
from tests.examples import examples

THEIRS = frozenset({"theirs"})


def told(*pieces: tuple[int, str, str, str], taken: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return id and text of what is let through of pieces: place, id, name, text."""
    calls = StreamedCalls(THEIRS, taken)
    fed = [calls.feed(CallFragment(place=at, call_id=one, name=name, arguments=text)) for at, one, name, text in pieces]
    return [(piece.call_id, piece.arguments) for piece in fed if piece is not None]


def test_a_call_begins_with_the_first_character_that_is_no_blank():
    assert told((0, "", "", ""), (0, "a", "theirs", " "), (0, "a", "theirs", ""), (0, "a", "theirs", "\n{")) == [
        ("a", " \n{")
    ]


def test_arguments_that_may_be_encoded_twice_are_held_to_their_end():
    assert told((0, "a", "theirs", ' "{'), (0, "a", "theirs", '}"'), (1, "b", "theirs", "{}")) == []


def test_a_call_whose_id_will_be_another_is_held():
    assert told((0, "a", "theirs", "{}"), (1, "a", "theirs", "{}"), (0, "a", "theirs", "x")) == [
        ("a", "{}"),
        ("a", "x"),
    ]
    assert told((0, "a", "theirs", "{}"), taken=("a",)) == []
    assert told((0, "a" * 257, "theirs", "{}")) == []
    assert told((0, "", "theirs", "{}")) == []


def test_calls_behind_one_that_is_held_wait_for_it_and_so_their_order_stays():
    assert told((0, "a", "theirs", ""), (1, "b", "theirs", "{}")) == []
    assert told((0, "a", "ours", "{}"), (1, "b", "theirs", "{}")) == [("b", "{}")]


def test_calls_that_will_not_count_are_held():
    pieces = [(place, str(place), "theirs", "{}") for place in range(MAX_CALLS_IN_ANSWER + 2)]
    assert len(told(*pieces)) == MAX_CALLS_IN_ANSWER


ids = st.sampled_from(["", "a", "b", "c", "d"])
written = st.lists(st.sampled_from(["", " ", "{}", '"', "{", "}", '{"x": 1}', '"{}"']), max_size=4)
answers = st.lists(st.tuples(ids, st.sampled_from(["theirs", "ours"]), written), min_size=1, max_size=5)


@examples(150)
@given(answers, st.sets(ids), st.data())
def test_what_is_told_is_what_the_log_will_hold(
    answer: list[tuple[str, str, list[str]]], taken: set[str], data: st.DataObject
):
    """In whatever order the pieces of calls come."""
    queue = [place for place, (_, _, texts) in enumerate(answer) for _ in texts]
    order = data.draw(st.permutations(queue))
    left = {place: iter(texts) for place, (_, _, texts) in enumerate(answer)}
    shown = told(*((place, *answer[place][:2], next(left[place])) for place in order), taken=tuple(taken))
    whole = tuple(ToolCall(call_id=one, name=name, arguments="".join(texts) or "{}") for one, name, texts in answer)
    earlier = tuple(ToolCall(call_id=one, name="ours", arguments="{}") for one in taken if one)
    state = TurnState(prompt=(), client_functions=THEIRS, tool_choice="auto", max_model_calls=9)
    if earlier:
        state = record(state, ModelAnswered("", earlier, FinishReason.TOOL_CALLS, Usage()))
        assert state.answer is not None
        state = TurnState((), THEIRS, "auto", 9, model_calls=1, added=(state.answer,))
    after = record(state, ModelAnswered("", whole, FinishReason.TOOL_CALLS, Usage())).answer
    assert after is not None
    joined = {one: "".join(text for of, text in shown if of == one) for one, _ in shown}
    held = {call.call_id: call.arguments for call in after.tool_calls if call.name == "theirs"}
    assert joined.items() <= held.items()
    assert list(joined) == list(held)[: len(joined)]
