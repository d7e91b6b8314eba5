"""A turn whose purpose is a summary: one model call with the same tools, none of which runs."""

from typing import Any

import prometheus_client
import structlog

from chat_shell.turns.telemetry.observer import LoggingTurnObserver
from shared.models.events import CitationAdded, FinishReason, MessagesAdded, TextDelta, TurnFailed, TurnFinished, Usage
from shared.models.execution import ExecutionRequest, NamedToolChoice, Purpose
from shared.models.messages import AssistantMessage, ToolMessage, UserMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.model_requests import client_functions, execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, call, calls, says
from tests.unit.chat_shell.turns.turn_cases import DOCUMENTS, FunctionTool, Stage, only

HISTORY = (
    UserMessage(content="Hi"),
    AssistantMessage(text="", tool_calls=(call(KNOWLEDGE_BASE_SEARCH, "{}", "a"),)),
    ToolMessage(call_id="a", content=DOCUMENTS),
    AssistantMessage(text="Hello 【4】."),
)


def asks(**changes: Any) -> ExecutionRequest:
    fields: dict[str, Any] = {"prompt": "Summarise.", "history": HISTORY, "knowledge": knowledge("kb_a")}
    return execution_request(**{**fields, "purpose": Purpose.SUMMARY, **changes})


async def test_tools_stay_and_none_may_be_called():
    demanding = PLAIN.model_copy(update={"tool_choice": NamedToolChoice(name="theirs")})
    fields: dict[str, Any] = {"parameters": demanding, "tools": client_functions(["theirs"])}
    stages = [Stage(ScriptedModel(says("They spoke."))) for _ in range(2)]
    await stages[0].run(asks(**fields))
    await stages[1].run(asks(**fields, purpose=Purpose.ANSWER))
    (summary,), (answer,) = (stage.model.calls for stage in stages)
    assert summary.tools == answer.tools
    assert summary.parameters.tool_choice == "none"
    assert summary.purpose is Purpose.SUMMARY
    assert summary.messages[-1] == UserMessage(content="Summarise.")


async def test_a_tool_that_is_called_all_the_same_is_not_run():
    clock = FunctionTool("clock")
    stage = Stage(ScriptedModel(calls(call("clock"), text="They spoke.")), tools=[clock])
    events = await stage.run(asks())
    assert clock.calls == []
    assert len(stage.model.calls) == 1
    assert events[-1] == TurnFinished(finish_reason=FinishReason.STOP, usage=stage.observer.finished[0][1])


async def test_a_summary_without_words_fails():
    stage = Stage(ScriptedModel(calls(call("clock"))), tools=[FunctionTool("clock")])
    assert isinstance((await stage.run(asks()))[-1], TurnFailed)


async def test_its_text_stays_as_the_model_wrote_it():
    stage = Stage(ScriptedModel(says("They spoke 【4", "】.")))
    events = await stage.run(asks())
    assert [event.text for event in only(TextDelta, events)] == ["They spoke 【4", "】."]
    assert only(CitationAdded, events) == []
    assert only(MessagesAdded, events) == [MessagesAdded(messages=(AssistantMessage(text="They spoke 【4】."),))]


async def test_a_summary_in_the_middle_of_a_turn_has_a_call_left():
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "b"),))
    added = (asked, ToolMessage(call_id="b", content="noon")) * 20
    stage = Stage(ScriptedModel(says("They spoke.")))
    assert isinstance((await stage.run(asks(added=added)))[-1], TurnFinished)


def counted(name: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value(name, {"outcome": "stop"}) or 0.0


def test_operators_tell_summaries_from_turns():
    names = ("ballast_turns_total", "ballast_summaries_total")
    before = [counted(name) for name in names]
    with structlog.testing.capture_logs() as lines:
        for purpose in (Purpose.SUMMARY, Purpose.ANSWER, Purpose.SUMMARY):
            request = asks(purpose=purpose)
            observer = LoggingTurnObserver()
            observer.turn_started(request)
            observer.turn_finished(request, "stop", Usage())
    assert [counted(name) - one for name, one in zip(names, before, strict=True)] == [1.0, 2.0]
    assert [line["purpose"] for line in lines] == ["summary"] * 2 + ["answer"] * 2 + ["summary"] * 2
