"""The turn as it runs: events, the model's failures, cancellation."""

import asyncio
from datetime import timedelta

import pytest

from chat_shell.models.ports import CallFragment, ReasoningFragment, RefusalFragment, TextFragment
from chat_shell.turns.services.model_answer import MAX_ANSWER_CHARACTERS
from shared.errors import (
    BallastError,
    DeadlineExceeded,
    InvalidRequest,
    ModelAuthenticationFailed,
    ModelRateLimited,
    ModelStalled,
    ModelUnavailable,
    UnknownModel,
)
from shared.models.events import (
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TurnFailed,
    TurnFinished,
    Usage,
)
from shared.models.execution import AccessMode, NamedToolChoice, TurnLimits
from shared.models.messages import AssistantMessage, ToolMessage
from shared.retries import RetryPolicy
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.clock import FakeClock
from tests.fakes.model_requests import NOW, client_functions, execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, call, calls, end, says
from tests.unit.chat_shell.turns.turn_cases import EchoingTools, FunctionTool, Hanging, Stage, events_of, only, results

USAGE = Usage(input_tokens=10, output_tokens=5)


class Unreachable(BaseException):
    """Is raised where nobody may come."""


async def test_a_plain_answer():
    stage = Stage(ScriptedModel(says("Three ", "months.")))
    assert await stage.run(execution_request()) == [
        ModelCallStarted(call=1),
        TextDelta(text="Three "),
        TextDelta(text="months."),
        ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE),
        MessagesAdded(messages=(AssistantMessage(text="Three months."),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE),
    ]
    assert stage.observer.started == ["resp_1"]
    assert stage.observer.finished == [("stop", USAGE)]
    assert stage.model.closed_streams == 1


async def test_a_turn_needs_its_ports_alone():
    stage = Stage(ScriptedModel(calls(call("any", '{"a": 1}', "a")), says("Done [1].")))
    service = stage.service_with(
        lambda _request, _card, _prompt: EchoingTools(), lambda _request, _state, step: f"call {step.number}"
    )
    events = await events_of(service, execution_request())
    assert [sent.reminder for sent in stage.model.calls] == ["call 1", "call 2"]
    assert results(stage.model.calls[1]) == ['{"a": 1}']
    assert [delta.text for delta in only(TextDelta, events)] == ["Done [1]."]


async def test_reasoning_is_shown_and_a_refusal_is_the_answer():
    script = [ReasoningFragment(text="Hm."), RefusalFragment(text="I will not."), end()]
    events = await Stage(ScriptedModel(script)).run(execution_request())
    assert events[1:3] == [ReasoningDelta(text="Hm."), RefusalDelta(text="I will not.")]
    assert only(MessagesAdded, events) == [MessagesAdded(messages=(AssistantMessage(text="I will not."),))]


@pytest.mark.parametrize("kind", [TextFragment, RefusalFragment, ReasoningFragment])
async def test_an_answer_without_an_end_is_cut_and_its_call_closed(
    kind: type[TextFragment | RefusalFragment | ReasoningFragment],
):
    half = "x" * (MAX_ANSWER_CHARACTERS // 2)
    stage = Stage(
        ScriptedModel([TextFragment(text=half), *(kind(text=f"{half}more") for _ in range(3)), Unreachable()])
    )
    events = await stage.run(execution_request())
    assert stage.model.closed_streams == 1
    shown = "".join(event.text for event in events if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta))
    assert len(shown) == MAX_ANSWER_CHARACTERS
    said = half if kind is ReasoningFragment else shown
    assert events[-3:] == [
        ModelCallFinished(call=1, finish_reason=FinishReason.LENGTH, usage=Usage()),
        MessagesAdded(messages=(AssistantMessage(text=said),)),
        TurnFinished(finish_reason=FinishReason.LENGTH, usage=Usage()),
    ]


async def test_an_answer_of_the_longest_length_is_whole():
    text = "x" * MAX_ANSWER_CHARACTERS
    events = await Stage(ScriptedModel(says(text))).run(execution_request())
    assert events[-1] == TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE)


async def test_message_and_results_are_reported_before_the_next_model_call():
    stage = Stage(
        ScriptedModel(calls(call("clock", "{}", "a"), text="Wait."), says("Noon.")), tools=[FunctionTool("clock")]
    )
    events = await stage.run(execution_request())
    first = MessagesAdded(
        messages=(
            AssistantMessage(text="Wait.", tool_calls=(call("clock", "{}", "a"),)),
            ToolMessage(call_id="a", content="clock done"),
        )
    )
    assert [type(event).__name__ for event in events] == [
        *("ModelCallStarted", "TextDelta", "ModelCallFinished", "MessagesAdded"),
        *("ModelCallStarted", "TextDelta", "ModelCallFinished", "MessagesAdded", "TurnFinished"),
    ]
    assert events[3] == first
    assert stage.model.calls[1].messages == (*stage.model.calls[0].messages, *first.messages)
    assert events[-1] == TurnFinished(finish_reason=FinishReason.STOP, usage=Usage(input_tokens=20, output_tokens=10))


async def test_a_model_that_never_stops_calling_answers_on_its_last_call():
    stage = Stage(ScriptedModel(calls(call("clock"), text="Again.")), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request(limits=TurnLimits(max_knowledge_calls=1, max_model_calls=3)))
    assert [one.parameters.tool_choice for one in stage.model.calls] == ["auto", "auto", "none"]
    assert all(one.tools == stage.model.calls[0].tools for one in stage.model.calls)
    assert only(MessagesAdded, events)[-1].messages == (AssistantMessage(text="Again."),)
    assert isinstance(events[-1], TurnFinished)


async def test_the_default_number_of_model_calls():
    stage = Stage(ScriptedModel(calls(call("clock"), text="Again.")), tools=[FunctionTool("clock")])
    await stage.run(execution_request())
    assert len(stage.model.calls) == 12


async def test_a_named_tool_is_demanded_once():
    choice = NamedToolChoice(name="clock")
    parameters = PLAIN.model_copy(update={"tool_choice": choice})
    stage = Stage(ScriptedModel(calls(call("clock")), says("Noon.")), tools=[FunctionTool("clock")])
    await stage.run(execution_request(parameters=parameters))
    assert [one.parameters.tool_choice for one in stage.model.calls] == [choice, "auto"]


async def test_a_clients_function_ends_the_turn_after_ours_ran():
    script = calls(call("theirs", '{"x": 1}', "a"), call("clock", "{}", "b"), call("theirs", "{}", "c"))
    stage = Stage(ScriptedModel(script), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert events[2:] == [
        FunctionCallRequested(call_id="a", name="theirs", arguments='{"x": 1}'),
        FunctionCallRequested(call_id="c", name="theirs", arguments="{}"),
        MessagesAdded(
            messages=(
                AssistantMessage(
                    text="",
                    tool_calls=(
                        call("theirs", '{"x": 1}', "a"),
                        call("clock", "{}", "b"),
                        call("theirs", "{}", "c"),
                    ),
                ),
                ToolMessage(call_id="b", content="clock done"),
            )
        ),
        TurnFinished(finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
    ]


def piece(place: int, name: str, arguments: str, call_id: str = "a") -> CallFragment:
    return CallFragment(place=place, call_id=call_id, name=name, arguments=arguments)


async def test_a_clients_call_is_told_in_pieces_and_then_as_a_whole():
    pieces = [piece(0, "theirs", ""), piece(0, "theirs", '{"x"'), piece(0, "theirs", ": 1}")]
    stage = Stage(ScriptedModel([*pieces, *calls(call("theirs", '{"x": 1}', "a"))]))
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert events[1:3] == [FunctionCallDelta(call_id="a", name="theirs", arguments=text) for text in ('{"x"', ": 1}")]
    assert only(FunctionCallRequested, events) == [
        FunctionCallRequested(call_id="a", name="theirs", arguments='{"x": 1}')
    ]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "clock"),
        ({"parameters": PLAIN.model_copy(update={"tool_choice": "none"})}, "theirs"),
        ({"knowledge": knowledge("kb_1", mode=AccessMode.RESTRICTED)}, "theirs"),
    ],
)
async def test_calls_of_ours_and_of_restricted_turns_are_not_told_in_pieces(changes: dict[str, object], name: str):
    script = [piece(0, name, "{}"), *says("Noon.")]
    stage = Stage(ScriptedModel(script), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request(tools=client_functions(["theirs"]), **changes))
    assert only(FunctionCallDelta, events) == []


async def test_a_model_call_may_be_tried_again_while_the_client_has_got_nothing_of_it():
    broken = [piece(0, "clock", "{"), ModelUnavailable("broke off")]
    shown = [piece(0, "theirs", "{"), ModelUnavailable("broke off")]
    stage = Stage(ScriptedModel(broken, shown, says("Noon.")), tools=[FunctionTool("clock")])
    events = await stage.run(execution_request(tools=client_functions(["theirs"])))
    assert len(stage.model.calls) == 2
    assert isinstance(events[-1], TurnFailed)


async def test_tools_are_offered_sorted_whatever_the_clients_order():
    offered: list[list[str]] = []
    for names in (["zebra", "alpha"], ["alpha", "zebra"]):
        stage = Stage(ScriptedModel(says("Hi")))
        await stage.run(execution_request(tools=client_functions(names)))
        offered.append([tool.name for tool in stage.model.calls[0].tools])
    knowledge = ["knowledge_base_list_documents", "knowledge_base_read_document", "knowledge_base_search"]
    assert offered == [["alpha", *knowledge, "zebra"]] * 2


async def test_a_clients_function_may_not_take_the_name_of_ours():
    stage = Stage(ScriptedModel(says("Hi")))
    with pytest.raises(InvalidRequest) as caught:
        await stage.run(execution_request(tools=client_functions(["a", "knowledge_base_search"])))
    assert caught.value.param == "tools[1].name"
    assert stage.observer.started == []


async def test_an_unknown_model_is_refused_before_the_first_event():
    with pytest.raises(UnknownModel):
        await Stage(ScriptedModel(says("Hi"))).run(execution_request(model="other"))


async def test_an_empty_answer_fails_the_turn():
    events = await Stage(ScriptedModel([end()])).run(execution_request())
    assert isinstance(events[1], ModelCallFinished)
    assert isinstance(events[2], TurnFailed)
    assert (events[2].error.type, events[2].error.retryable) == ("ModelProtocolViolated", True)
    assert events[2].usage == USAGE


async def test_a_stream_without_an_end_was_cut():
    events = await Stage(ScriptedModel([TextFragment(text="Half")])).run(execution_request())
    assert events[2] == MessagesAdded(messages=(AssistantMessage(text="Half"),))
    assert [event.error.type for event in only(TurnFailed, events)] == ["ModelStreamCut"]


async def test_what_was_said_before_a_failure_is_kept():
    error = ModelStalled("no frame for 60 s")
    stage = Stage(ScriptedModel([TextFragment(text="Half an"), error]))
    events = await stage.run(execution_request())
    assert events == [
        ModelCallStarted(call=1),
        TextDelta(text="Half an"),
        MessagesAdded(messages=(AssistantMessage(text="Half an"),)),
        TurnFailed(
            error=ErrorReport(
                type="ModelStalled", code="server_error", message="no frame for 60 s", param=None, retryable=True
            ),
            usage=Usage(),
        ),
    ]
    assert stage.observer.finished == [("ModelStalled", Usage())]
    assert len(stage.model.calls) == 1


@pytest.mark.parametrize("error", [ModelUnavailable("503"), ModelRateLimited("429", retry_after_seconds=2.0)])
async def test_a_failure_before_the_first_fragment_is_retried_with_the_same_call(error: BallastError):
    stage = Stage(ScriptedModel([error], [error], says("Hi")))
    events = await stage.run(execution_request())
    assert isinstance(events[-1], TurnFinished)
    assert len(only(ModelCallStarted, events)) == 1
    assert stage.model.calls[0] == stage.model.calls[1] == stage.model.calls[2]
    assert len(stage.slept) == 2
    assert all(seconds >= (error.retry_after_seconds or 0.25) for seconds in stage.slept)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ModelUnavailable("503"), 3),
        (ModelRateLimited("429", retry_after_seconds=60.0), 1),
        (ModelAuthenticationFailed("401"), 1),
        (ModelStalled("idle"), 1),
    ],
)
async def test_retries_end(error: BallastError, attempts: int):
    stage = Stage(ScriptedModel([error]))
    events = await stage.run(execution_request())
    assert len(stage.model.calls) == stage.model.closed_streams == attempts
    assert [event.error.type for event in only(TurnFailed, events)] == [type(error).__name__]
    assert only(MessagesAdded, events) == []


def test_waits_double_and_spread():
    policy = RetryPolicy(jitter=lambda: 0.0)
    assert [policy.wait_seconds(ModelUnavailable("503"), retries) for retries in range(3)] == [0.25, 0.5, None]
    assert RetryPolicy(jitter=lambda: 0.5).wait_seconds(ModelUnavailable("503"), 1) == 1.0


async def test_nothing_is_retried_once_a_fragment_came():
    stage = Stage(ScriptedModel([ReasoningFragment(text="Hm"), ModelUnavailable("gone")], says("Hi")))
    events = await stage.run(execution_request())
    assert [event.error.type for event in only(TurnFailed, events)] == ["ModelUnavailable"]
    assert len(stage.model.calls) == 1


async def test_no_retry_begins_after_the_deadline():
    stage = Stage(ScriptedModel([ModelRateLimited("429", retry_after_seconds=3.0)], says("Hi")))
    events = await stage.run(execution_request(deadline=NOW + timedelta(seconds=2)))
    assert stage.slept == []
    assert isinstance(events[-1], TurnFailed)


async def test_a_turn_over_its_deadline_fails():
    stage = Stage(ScriptedModel(says("Hi")))
    events = await stage.run(execution_request(deadline=NOW))
    assert [event.error.type for event in only(TurnFailed, events)] == ["DeadlineExceeded"]
    assert stage.model.calls == []


async def test_the_deadline_may_pass_before_the_tools_run():
    clock = FakeClock()

    async def dawdle() -> None:
        clock.advance(601)

    script = [TextFragment(text="Wait."), dawdle, end(call("clock", "{}", "a"))]
    stage = Stage(
        ScriptedModel(script, says("Never said")), clock=clock, tools=[Hanging("clock")], tool_timeout_seconds=1e6
    )
    events = await stage.run(execution_request())
    added = [[message.role for message in event.messages] for event in only(MessagesAdded, events)]
    assert added == [["assistant", "tool"]]
    assert [event.error.type for event in only(TurnFailed, events)] == ["DeadlineExceeded"]
    assert len(stage.model.calls) == 1


async def test_the_models_own_deadline_error_keeps_the_text():
    stage = Stage(ScriptedModel([TextFragment(text="Half"), DeadlineExceeded("over")]))
    events = await stage.run(execution_request())
    assert events[-2] == MessagesAdded(messages=(AssistantMessage(text="Half"),))


async def test_who_takes_no_more_events_closes_the_models_stream():
    stage = Stage(ScriptedModel(says("One", "Two")))
    seen: list[ExecutionEvent] = []

    async def emit(event: ExecutionEvent) -> None:
        seen.append(event)
        if len(seen) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await stage.service()(execution_request(), emit)
    assert seen == [ModelCallStarted(call=1), TextDelta(text="One")]
    assert stage.model.closed_streams == 1
    assert stage.observer.finished == [("cancelled", Usage())]


async def test_cancelling_the_consumer_closes_the_models_stream():
    reached, forever = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        reached.set()
        await forever.wait()

    stage = Stage(ScriptedModel([TextFragment(text="One"), hang]))
    consumer = asyncio.create_task(stage.run(execution_request()))
    await reached.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert stage.model.closed_streams == 1
    assert stage.observer.finished == [("cancelled", Usage())]


async def test_a_defect_of_the_model_adapter_gets_out_and_is_counted():
    stage = Stage(ScriptedModel([RuntimeError("defect")]))
    with pytest.raises(RuntimeError):
        await stage.run(execution_request())
    assert stage.observer.finished == [("RuntimeError", Usage())]


async def test_results_of_the_clients_functions_continue_a_turn():
    history = (
        AssistantMessage(text="", tool_calls=(call("theirs", "{}", "a"),)),
        ToolMessage(call_id="a", content="42"),
    )
    stage = Stage(ScriptedModel(says("It is 42.")))
    events = await stage.run(execution_request(history=history, prompt=None, tools=client_functions(["theirs"])))
    assert isinstance(events[-1], TurnFinished)
    assert results(stage.model.calls[0]) == ["42"]
