"""The turn as a value: what is decided, and what follows from what came back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.turns.domain.turn import (
    DROPPED_CALLS,
    MAX_CALLS_IN_ANSWER,
    TOO_MANY_CALLS,
    CallModel,
    Finish,
    ModelAnswered,
    RunTools,
    ToolsAnswered,
    TurnState,
    YieldForCompaction,
    decide,
    list_left_out,
    record,
)
from shared.errors import ModelProtocolViolated
from shared.models.events import FinishReason, Usage, add_usage
from shared.models.execution import NamedToolChoice, ToolChoice
from shared.models.messages import AssistantMessage, OpaqueItem, ProviderReasoning, ToolCall, ToolMessage, UserMessage
from tests.fakes.model_scripted import call

PROMPT = (UserMessage(content="Hi"),)


def state(max_model_calls: int = 12, tool_choice: ToolChoice = "auto") -> TurnState:
    return TurnState(PROMPT, frozenset({"theirs"}), tool_choice, max_model_calls)


def answered(text: str = "", *calls: ToolCall, reason: FinishReason = FinishReason.STOP) -> ModelAnswered:
    return ModelAnswered(text, calls, reason, Usage(input_tokens=1))


def results_for(step: RunTools) -> ToolsAnswered:
    return ToolsAnswered(tuple(ToolMessage(call_id=one.call_id, content="r") for one in step.own))


def choices(turn: TurnState, model_calls: int) -> list[ToolChoice]:
    """Let the model call a tool in every answer and note what choice it was given."""
    seen: list[ToolChoice] = []
    for _ in range(model_calls):
        step = decide(turn)
        assert isinstance(step, CallModel)
        seen.append(step.tool_choice)
        turn = record(turn, answered("", call("ours")))
        step = decide(turn)
        if isinstance(step, RunTools):
            turn = record(turn, results_for(step))
    return seen


def test_a_turn_begins_with_a_model_call():
    assert decide(state()) == CallModel(1, PROMPT, "auto")


def test_an_answer_ends_the_turn():
    ended = record(state(), answered("Hello"))
    assert decide(ended) == Finish(FinishReason.STOP)
    assert ended.added == (AssistantMessage(text="Hello"),)


def test_what_the_provider_wants_back_stays_with_its_answer():
    kept = ProviderReasoning(api="responses", items=(OpaqueItem(content="{}"),))
    waiting = record(state(), replace(answered("Wait", call("ours")), reasoning=kept))
    ended = record(state(), replace(answered("Hello"), reasoning=kept))
    cut = record(state(), replace(answered("Hello", call("ours"), reason=FinishReason.LENGTH), reasoning=kept))

    assert waiting.answer is not None
    assert waiting.answer.reasoning == kept
    assert ended.added == (AssistantMessage(text="Hello", reasoning=kept),)
    assert cut.added == (AssistantMessage(text="Hello"),)


def test_calls_without_end_are_cut_and_each_of_the_others_has_its_result():
    kept = ProviderReasoning(api="responses", items=(OpaqueItem(content="{}", after_calls=500),))
    waiting = record(state(), replace(answered("", *[call("ours", call_id="a")] * 1_000), reasoning=kept))
    step = decide(waiting)
    assert isinstance(step, RunTools)
    assert len({one.call_id for one in step.own}) == MAX_CALLS_IN_ANSWER
    ended = record(waiting, results_for(step))
    assert [message.role for message in ended.added] == ["assistant", *["tool"] * MAX_CALLS_IN_ANSWER]
    assert waiting.answer is not None
    assert waiting.answer.reasoning is None


def test_calls_that_do_not_count_are_said():
    calls = [call("ours")] * (MAX_CALLS_IN_ANSWER + 72)
    all_of_them, too_many = (replace(answered("", *some), left_out=("x",)) for some in (calls[:-72], calls))
    cut = answered("Hello", call("ours"), reason=FinishReason.LENGTH)

    assert list_left_out(record(state(), all_of_them), all_of_them) == ("x",)
    assert list_left_out(record(state(), too_many), too_many) == ("x", TOO_MANY_CALLS)
    assert list_left_out(record(state(), cut), cut) == (DROPPED_CALLS,)


def test_message_and_results_are_added_together():
    waiting = record(state(), answered("Wait", call("ours", call_id="a"), call("ours", call_id="b")))
    assert waiting.added == ()
    step = decide(waiting)
    assert isinstance(step, RunTools)
    assert [one.call_id for one in step.own] == ["a", "b"]
    after = record(waiting, results_for(step))
    assert [message.role for message in after.added] == ["assistant", "tool", "tool"]
    assert decide(after) == CallModel(2, (*PROMPT, *after.added), "auto")


def test_a_clients_call_ends_the_turn_after_ours():
    waiting = record(state(), answered("", call("theirs", call_id="a"), call("ours", call_id="b")))
    step = decide(waiting)
    assert isinstance(step, RunTools)
    assert [one.name for one in step.client] == ["theirs"]
    after = record(waiting, results_for(step))
    assert decide(after) == Finish(FinishReason.TOOL_CALLS)
    assert [message.role for message in after.added] == ["assistant", "tool"]


def test_a_demand_for_a_tool_holds_on_the_first_call_only():
    named = NamedToolChoice(name="ours")
    assert choices(state(3, "required"), 3) == ["required", "auto", "none"]
    assert choices(state(3, named), 3) == [named, "auto", "none"]
    assert choices(state(1, "required"), 1) == ["none"]


def test_a_demand_that_only_the_clients_functions_satisfy_is_repeated_and_not_for_ever():
    demanding = replace(state(6, "required"), demands_function=True)
    assert choices(demanding, 6) == ["required", "required", "required", "auto", "auto", "none"]
    assert choices(replace(demanding, max_model_calls=2), 2) == ["required", "none"]


def test_no_tools_wished_is_no_tools_called():
    ended = record(state(tool_choice="none"), answered("Text", call("ours")))
    assert decide(ended) == Finish(FinishReason.STOP)
    assert ended.added == (AssistantMessage(text="Text"),)


def test_a_model_that_only_calls_what_it_may_not_is_told_apart_from_one_that_says_nothing():
    step = decide(record(state(tool_choice="none"), answered("", call("ours"))))
    assert isinstance(step, Finish)
    assert str(step.outcome) == "the model only called functions, which it may not here"


def test_a_model_that_calls_functions_to_the_end_is_told_how_many_calls_a_turn_may_make():
    step = decide(record(state(1), answered("", call("ours"))))
    assert isinstance(step, Finish)
    assert str(step.outcome) == "the model went on to call functions in the last of the 1 model calls of a turn"


def test_calls_on_the_last_model_call_are_dropped():
    ended = record(state(1), answered("Text", call("theirs"), reason=FinishReason.TOOL_CALLS))
    assert decide(ended) == Finish(FinishReason.STOP)
    assert ended.added == (AssistantMessage(text="Text"),)


@pytest.mark.parametrize("answer", [answered(), answered("", reason=FinishReason.TOOL_CALLS)])
def test_an_empty_answer_is_an_error(answer: ModelAnswered):
    step = decide(record(state(), answer))
    assert isinstance(step, Finish)
    assert isinstance(step.outcome, ModelProtocolViolated)


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER])
def test_an_answer_that_was_cut_off_keeps_its_text_and_drops_its_calls(reason: FinishReason):
    cut = record(state(), answered("Half", call("ours", '{"qu'), reason=reason))
    assert (decide(cut), cut.added) == (Finish(reason), (AssistantMessage(text="Half"),))
    nothing = record(state(), answered("", reason=reason))
    assert (decide(nothing), nothing.added) == (Finish(reason), ())


def test_ids_are_made_up_and_made_distinct():
    calls = (call("ours"), call("ours", call_id="x"), call("ours", call_id="x"), call("ours", call_id="call_1_1"))
    waiting = record(state(), answered("", *calls))
    step = decide(waiting)
    assert isinstance(step, RunTools)
    assert [one.call_id for one in step.own] == ["call_1_1", "x", "x_2", "call_1_1_2"]
    again = record(record(waiting, results_for(step)), answered("", call("ours", call_id="x"), call("ours")))
    assert again.answer is not None
    assert [one.call_id for one in again.answer.tool_calls] == ["x_3", "call_2_2"]


def test_results_that_nobody_waits_for_are_a_defect():
    with pytest.raises(ValueError, match="no tool call"):
        record(state(), ToolsAnswered(()))


def test_usage_adds_up_what_is_known():
    first = Usage(input_tokens=10, cached_tokens=None, output_tokens=1)
    assert add_usage(first, Usage(input_tokens=5)) == Usage(input_tokens=15, output_tokens=1)
    assert add_usage(Usage(), Usage()) == Usage()


tool_calls = st.builds(
    ToolCall,
    call_id=st.sampled_from(["", "a", "b"]),
    name=st.sampled_from(["ours", "theirs", "none"]),
    arguments=st.just("{}"),
)
answers = st.builds(
    ModelAnswered,
    text=st.sampled_from(["", "text"]),
    tool_calls=st.lists(tool_calls, max_size=3).map(tuple),
    finish_reason=st.sampled_from(FinishReason),
    usage=st.builds(Usage, input_tokens=st.none() | st.integers(0, 9)),
)


@given(
    st.lists(answers, min_size=8, max_size=8),
    st.integers(1, 8),
    st.sampled_from(["auto", "none", "required"]),
)
def test_every_turn_ends_and_no_call_is_left_without_its_result(
    said: list[ModelAnswered], max_model_calls: int, tool_choice: ToolChoice
):
    turn = state(max_model_calls, tool_choice)
    unused = iter(said)
    while not isinstance(step := decide(turn), Finish | YieldForCompaction):
        prefix = turn.messages
        observation = next(unused) if isinstance(step, CallModel) else results_for(step)
        turn = record(turn, observation)
        assert turn.messages[: len(prefix)] == prefix
    assert turn.model_calls <= max_model_calls
    ids = [one.call_id for m in turn.added if isinstance(m, AssistantMessage) for one in m.tool_calls]
    results = [m.call_id for m in turn.added if isinstance(m, ToolMessage)]
    theirs = [
        one.call_id
        for m in turn.added
        if isinstance(m, AssistantMessage)
        for one in m.tool_calls
        if one.name == "theirs"
    ]
    assert len(set(ids)) == len(ids)
    assert results == [call_id for call_id in ids if call_id not in theirs]
    assert isinstance(step, Finish)
    assert (step.outcome is FinishReason.TOOL_CALLS) == bool(theirs)
