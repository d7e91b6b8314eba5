"""A chat_shell that plays scripts, and records what it was asked."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    SearchFinished,
    SearchStarted,
    TextDelta,
    TurnFinished,
    Usage,
)
from shared.models.execution import ExecutionRequest
from shared.models.messages import AddedMessage, AssistantMessage, ToolCall, ToolMessage, UserMessage
from shared.models.served_tools import NO_TOOLS, OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult
from shared.prompts.knowledge_base import CANNOT_ANSWER
from shared.prompts.message_order import read_reminder

USAGE = Usage(input_tokens=11, cached_tokens=4, cache_write_tokens=0, output_tokens=7, reasoning_tokens=2)

Step = ExecutionEvent | Sequence[ExecutionEvent] | asyncio.Event | Exception
"""An event, several at once, a gate to wait at, or something to raise."""


def answer(*texts: str, finish_reason: FinishReason = FinishReason.STOP) -> list[ExecutionEvent]:
    """Script a turn of one model call that says these pieces."""
    return [
        ModelCallStarted(call=1),
        *(TextDelta(text=text) for text in texts),
        ModelCallFinished(call=1, finish_reason=finish_reason, usage=USAGE),
        MessagesAdded(messages=(AssistantMessage(text="".join(texts)),)),
        TurnFinished(finish_reason=finish_reason, usage=USAGE),
    ]


def function_calls(
    *call_ids: str, name: str = "weather", text: str = "", arguments: str = "{}"
) -> list[ExecutionEvent]:
    """Script a turn that ends with calls of the client's function."""
    calls = tuple(ToolCall(call_id=call_id, name=name, arguments=arguments) for call_id in call_ids)
    return [
        ModelCallStarted(call=1),
        *([TextDelta(text=text)] if text else []),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        *(FunctionCallRequested(call_id=call.call_id, name=call.name, arguments=call.arguments) for call in calls),
        MessagesAdded(messages=(AssistantMessage(text=text, tool_calls=calls),)),
        TurnFinished(finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
    ]


def _kept(event: ExecutionEvent, said: set[str | None]) -> ExecutionEvent:
    """Have a reminder stay, where nothing has said it before."""
    if not isinstance(event, ModelCallStarted) or not event.reminder:
        return event
    words = read_reminder(UserMessage(content=event.reminder))
    if words in said:
        return event.model_copy(update={"reminder": ""})
    said.add(words)
    return event.model_copy(update={"reminder_stays": True})


class ScriptedChatShell:
    """Plays one script a turn, of its model where that has some; without one left it says "Hello."."""

    def __init__(self, *scripts: Sequence[Step], models: Sequence[str] = ("demo-model", "vendor/large")) -> None:
        self.scripts = list(scripts)
        self.model_names = list(models)
        self.extra_parameters: tuple[str, ...] = ()
        self.scripts_of: dict[str, list[Sequence[Step]]] = {}
        self.requests: list[ExecutionRequest] = []
        self.broken_off = 0
        self.offered = NO_TOOLS
        self.asked_for_tools = 0
        self.tool_results: list[SingleToolResult | Exception] = []
        self.tool_calls: list[SingleToolCall] = []

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        """Play the next script."""
        self.requests.append(request)
        scripts = self.scripts_of.get(request.model) or self.scripts
        script: Sequence[Step] = scripts.pop(0) if scripts else answer("Hello.")
        is_over, said = False, {read_reminder(message) for message in (*request.history, *request.added)}
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    await asyncio.sleep(0)  # as a link does, which waits for each of its messages
                    events = tuple(step) if isinstance(step, Sequence) else (step,)
                    yield tuple(_kept(event, said) if request.keeps_reminders else event for event in events)
            is_over = True
        finally:
            self.broken_off += not is_over

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models."""
        return tuple(
            ModelCard(
                name=name,
                context_window_tokens=128_000,
                max_output_tokens=8_000,
                extra_parameters=self.extra_parameters,
            )
            for name in self.model_names
        )

    async def tools(self) -> OfferedTools:
        """Return `offered`."""
        self.asked_for_tools += 1
        return self.offered

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Give or raise the next of `tool_results`; without one left the restricted base gives no answer."""
        self.tool_calls.append(call)
        result = (
            self.tool_results.pop(0)
            if self.tool_results
            else SingleToolResult(text=CANNOT_ANSWER, failed=False, structured=None)
        )
        if isinstance(result, Exception):
            raise result
        return result

    async def close(self) -> None:
        """Free nothing."""


def exchange(number: int) -> tuple[AddedMessage, ...]:
    """Return a call of the knowledge search with its result."""
    call = ToolCall(call_id=f"k{number}", name="knowledge_base_search", arguments="{}")
    return AssistantMessage(text="", tool_calls=(call,)), ToolMessage(call_id=f"k{number}", content=f"Whale {number}.")


def searched(number: int) -> list[ExecutionEvent]:
    """Script the model call of this number, which searches."""
    return [
        ModelCallStarted(call=number),
        ModelCallFinished(call=number, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id=f"k{number}", queries=("whales",)),
        SearchFinished(call_id=f"k{number}", failed=False, results=()),
        MessagesAdded(messages=exchange(number)),
    ]


def answered(number: int, text: str = "They sleep.") -> list[ExecutionEvent]:
    """Script an execution that begins with the model call of this number and answers."""
    _, *rest = answer(text)
    finished = ModelCallFinished(call=number, finish_reason=FinishReason.STOP, usage=USAGE)
    return [ModelCallStarted(call=number), rest[0], finished, *rest[2:]]
