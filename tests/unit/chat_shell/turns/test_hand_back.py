"""A turn that is handed back before a model call, and one that goes on behind it."""

import pytest

from chat_shell.turns.services.event_buffer import EventBuffer
from shared.models.events import MessagesAdded, ModelCallStarted, TurnFinished, TurnHandedBack, Usage
from shared.models.execution import ExecutionRequest, TurnLimits
from shared.models.messages import AssistantMessage, ToolMessage, UserMessage
from shared.prompts.knowledge_base import CALL_LIMIT_REACHED, KNOWLEDGE_BASE_SEARCH
from tests.fakes.model_requests import execution_request
from tests.fakes.model_scripted import ScriptedModel, ScriptLine, call, end, says
from tests.unit.chat_shell.turns.turn_cases import FunctionTool, Stage, only, results

CLOCK = call("clock", "{}", "a")  # its result is estimated at 3 tokens
REPORTED = Usage(input_tokens=100, output_tokens=20)


def counted(input_tokens: int | None = 100, output_tokens: int | None = 20) -> list[ScriptLine]:
    return [end(CLOCK, input_tokens=input_tokens, output_tokens=output_tokens)]


def limited(hand_back_tokens: int | None, *, calls: int = 12, knowledge_calls: int = 10) -> TurnLimits:
    return TurnLimits(max_knowledge_calls=knowledge_calls, max_model_calls=calls, hand_back_tokens=hand_back_tokens)


def staged(*scripts: list[ScriptLine]) -> Stage:
    return Stage(ScriptedModel(*scripts), tools=[FunctionTool("clock")])


async def run(stage: Stage, limits: TurnLimits, *added: AssistantMessage | ToolMessage | UserMessage):
    request: ExecutionRequest = execution_request(limits=limits, added=added)
    return await stage.run(request)


async def test_the_turn_stops_where_its_prompt_reaches_the_limit():
    stage = staged(counted(), says("Noon."))
    events = await run(stage, limited(123))
    assert events[-1] == TurnHandedBack(prompt_tokens=123, usage=REPORTED)
    assert [len(event.messages) for event in only(MessagesAdded, events)] == [2]
    assert len(only(ModelCallStarted, events)) == len(stage.model.calls) == 1
    assert stage.observer.finished == [("handed_back", REPORTED)]


@pytest.mark.parametrize("limit", [124, None])
async def test_below_the_limit_it_goes_on(limit: int | None):
    stage = staged(counted(), says("Noon."))
    assert isinstance((await run(stage, limited(limit)))[-1], TurnFinished)


@pytest.mark.parametrize("reported", [None, 0])
async def test_what_no_provider_counts_is_estimated(reported: int | None):
    stage = staged(counted(reported, reported), says("Noon."))
    (ended,) = only(TurnHandedBack, await run(stage, limited(20)))
    assert 20 <= ended.prompt_tokens < 40


async def test_the_first_call_of_an_execution_is_made_whatever_its_size():
    stage = staged(says("Noon."))
    added = (AssistantMessage(text="", tool_calls=(CLOCK,)), ToolMessage(call_id="a", content="x" * 1000))
    assert isinstance((await run(stage, limited(1), *added))[-1], TurnFinished)


async def test_a_message_of_the_user_may_stand_among_what_was_added():
    stage = staged(says("Noon."))
    entered = UserMessage(content="In Oslo, I mean.")
    added = (AssistantMessage(text="", tool_calls=(CLOCK,)), ToolMessage(call_id="a", content="11:59"), entered)
    await run(stage, limited(None), *added)
    assert stage.model.calls[0].messages[-3:] == added


async def test_calls_count_across_executions():
    asked = AssistantMessage(text="", tool_calls=(call(KNOWLEDGE_BASE_SEARCH, '{"query": "x"}', "a"),))
    again: list[ScriptLine] = [end(call(KNOWLEDGE_BASE_SEARCH, '{"query": "y"}', "b"))]
    stage = staged(again, says("Noon."))
    events = await run(
        stage, limited(None, calls=3, knowledge_calls=1), asked, ToolMessage(call_id="a", content="nothing")
    )
    assert [event.call for event in only(ModelCallStarted, events)] == [2, 3]
    assert [one.parameters.tool_choice for one in stage.model.calls] == ["auto", "none"]
    assert results(stage.model.calls[-1])[-1] == CALL_LIMIT_REACHED


async def test_a_clients_function_ends_the_turn_before_it_is_handed_back():
    stage = Stage(ScriptedModel(counted()))
    theirs = FunctionTool("clock").definition
    events = await stage.run(execution_request(limits=limited(1), tools=(theirs,)))
    assert isinstance(events[-1], TurnFinished)


async def test_the_buffer_knows_the_end():
    buffer = EventBuffer()
    await buffer.put(TurnHandedBack(prompt_tokens=1, usage=REPORTED))
    assert buffer.is_complete
