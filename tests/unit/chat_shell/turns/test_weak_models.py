"""Models that write calls as text, encode arguments twice, or make one call again and again."""

import json

import pytest

from chat_shell.models.ports import TextFragment
from shared.models.events import FinishReason, FunctionCallRequested, MessagesAdded, TextDelta, TurnFailed, TurnFinished
from shared.models.execution import Purpose
from shared.models.messages import AssistantMessage, ToolMessage
from shared.prompts.tool_results import CALL_REPEATED
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.model_requests import client_functions, execution_request
from tests.fakes.model_scripted import ScriptedModel, call, calls, end, says
from tests.unit.chat_shell.turns.turn_cases import FunctionTool, Stage, only, results

WRITTEN = ("<tool_call>", '{"name": "clock", "arguments": {"zone": "UTC"}}', "</tool_call>")


def shown(events: list[object]) -> str:
    return "".join(event.text for event in only(TextDelta, events))


async def test_a_call_that_is_written_as_text_is_run():
    clock = FunctionTool("clock")
    stage = Stage(ScriptedModel(says(*WRITTEN), says("Noon.")), tools=[clock])
    events = await stage.run(execution_request())
    assert clock.calls == [{"zone": "UTC"}]
    assert shown([*events]) == "Noon."
    asked = AssistantMessage(text="", tool_calls=(call("clock", '{"zone":"UTC"}', "call_written_1"),))
    answered = ToolMessage(call_id="call_written_1", content="clock done")
    assert only(MessagesAdded, events)[0].messages == (asked, answered)
    assert stage.model.calls[1].messages[-2:] == (asked, answered)


async def test_it_may_be_a_function_of_the_client():
    stage = Stage(ScriptedModel(says('<function=theirs>{"a": 1}</function>')))
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert [(event.name, event.arguments) for event in only(FunctionCallRequested, events)] == [("theirs", '{"a":1}')]
    assert only(TurnFinished, events)[0].finish_reason is FinishReason.TOOL_CALLS


async def test_one_answer_of_a_turn_is_read_so():
    stage = Stage(ScriptedModel(says(*WRITTEN)), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request())
    assert len(stage.model.calls) == 2
    assert shown([*events]) == "".join(WRITTEN)

    added = only(MessagesAdded, events)[0].messages
    taken_over = await stage.run(execution_request(added=added))
    assert shown([*taken_over]) == "".join(WRITTEN)


@pytest.mark.parametrize(
    "changes", [{"purpose": Purpose.SUMMARY}, {"parameters": PLAIN.model_copy(update={"tool_choice": "none"})}]
)
async def test_where_no_tool_may_be_called_it_is_text(changes: dict[str, object]):
    clock = FunctionTool("clock")
    events = await Stage(ScriptedModel(says(*WRITTEN)), tools=[clock]).run(execution_request(**changes))
    assert shown([*events]) == "".join(WRITTEN)
    assert clock.calls == []


async def test_a_call_that_was_cut_off_is_text():
    script = [TextFragment(text="".join(WRITTEN)), end(reason=FinishReason.LENGTH)]
    events = await Stage(ScriptedModel(script), tools=[FunctionTool("clock")]).run(execution_request())
    assert shown([*events]) == "".join(WRITTEN)


async def test_what_was_held_back_when_the_model_failed_is_shown_and_kept():
    stage = Stage(ScriptedModel([TextFragment(text=WRITTEN[0])]), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request())
    assert shown([*events]) == WRITTEN[0]
    assert only(MessagesAdded, events) == [MessagesAdded(messages=(AssistantMessage(text=WRITTEN[0]),))]
    assert isinstance(events[-1], TurnFailed)


async def test_real_calls_count_where_an_answer_has_both():
    clock = FunctionTool("clock")
    script = [TextFragment(text="".join(WRITTEN)), end(call("clock", "{}", "a"))]
    events = await Stage(ScriptedModel(script, says("Noon.")), tools=[clock]).run(execution_request())
    assert clock.calls == [{}]
    assert shown([*events]) == "".join(WRITTEN) + "Noon."


async def test_arguments_that_were_encoded_twice_are_decoded_for_the_client_and_the_log():
    stage = Stage(ScriptedModel(calls(call("theirs", json.dumps('{"a": 1}'), "a"))))
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert [event.arguments for event in only(FunctionCallRequested, events)] == ['{"a": 1}']
    assert only(MessagesAdded, events)[0].messages[0] == AssistantMessage(
        text="", tool_calls=(call("theirs", '{"a": 1}', "a"),)
    )


@pytest.mark.parametrize("arguments", ['"just words"', '""', '"', '"[1]"', '"\\ud800"'])
async def test_other_strings_stay_as_they_are(arguments: str):
    stage = Stage(ScriptedModel(calls(call("theirs", arguments, "a"))))
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert [event.arguments for event in only(FunctionCallRequested, events)] == [arguments]


async def test_a_call_that_is_made_again_and_again_is_not_run_for_ever():
    clock = FunctionTool("clock")
    again = [calls(call("clock", text)) for text in ('{"a":1,"b":2}', '{"b": 2, "a": 1}', '{"a":1,"b":2}')]
    other = calls(call("clock", '{"a":1,"b":2}'), call("clock", '{"a":2}'))
    stage = Stage(ScriptedModel(*again, other, says("Noon.")), tools=[clock])
    events = await stage.run(execution_request())
    assert results(stage.model.calls[-1]) == ["clock done"] * 3 + [CALL_REPEATED, "clock done"]
    assert len(clock.calls) == 4
    assert isinstance(events[-1], TurnFinished)


async def test_equal_calls_of_one_answer_are_made_once_each_time():
    clock = FunctionTool("clock")
    stage = Stage(ScriptedModel(calls(*[call("clock")] * 5), says("Noon.")), tools=[clock])
    await stage.run(execution_request())
    assert len(clock.calls) == 5
