"""A chat_shell for walks: it answers, calls tools and functions of clients, and waits where a walk wants it to."""

import asyncio
from collections.abc import AsyncGenerator

from shared.errors import Unavailable
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.execution import AccessMode, ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from shared.models.served_tools import OfferedTools
from shared.prompts.skills import READ_SKILL
from shared.tokens import message_tokens
from tests.fakes.chat_shell_scripted import function_calls
from tests.fakes.chat_shell_talking import TalkingChatShell, answered, prompt_tokens, summary_of

WINDOW_TOKENS, ANSWER_TOKENS = 8_000, 1_000


class GatedChatShell(TalkingChatShell):
    """Answers as `TalkingChatShell`, and may wait before an event of the next execution; "FAIL" makes it fail."""

    def __init__(self, requests: list[ExecutionRequest], offered: OfferedTools) -> None:
        super().__init__(WINDOW_TOKENS, ANSWER_TOKENS)
        self.requests = requests
        self.offered = offered
        self.waits_before: int | None = None
        self.waiting = asyncio.Event()
        self.gate = asyncio.Event()

    def wait_before(self, event: int) -> None:
        """Have the next execution wait before its event of this number, or at its end where it has fewer."""
        self.waits_before = event
        self.waiting.clear()
        self.gate.clear()

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        """Answer, with a pause where one was asked for."""
        self.requests.append(request)
        place, self.waits_before = self.waits_before, None
        if "FAIL" in str(request.prompt) and request.purpose is Purpose.ANSWER:
            raise Unavailable("The model is away.")
        events = _events(request)
        for number, event in enumerate(events):
            if place is not None and number == min(place, len(events) - 1):
                self.waiting.set()
                await self.gate.wait()
            yield (event,)


def _events(request: ExecutionRequest) -> list[ExecutionEvent]:
    """Return the rest of a turn: a model call for each size that its question names and no result shows, an answer."""
    if request.purpose is Purpose.SUMMARY:
        return answered(request, summary_of(request))
    if "CALL" in str(request.prompt) and request.tools and not request.added:
        return function_calls(f"{request.turn_id}_f1", f"{request.turn_id}_f2", name=request.tools[0].name)
    sizes = [int(word) for word in str(request.prompt).partition("LOOK ")[2].split() if word.isdigit()]
    number = 1 + sum(isinstance(message, AssistantMessage) for message in request.added)
    done = sum(isinstance(message, ToolMessage) for message in request.added)
    tokens, limit = prompt_tokens(request), request.limits.hand_back_tokens
    events: list[ExecutionEvent] = []
    for size in sizes[done:]:
        if events and limit is not None and tokens >= limit:
            return [*events, TurnHandedBack(prompt_tokens=tokens, usage=Usage())]
        added = _exchange(request, number, size)
        finished = ModelCallFinished(call=number, finish_reason=FinishReason.TOOL_CALLS, usage=Usage())
        events += [ModelCallStarted(call=number), finished, MessagesAdded(messages=added)]
        tokens += sum(map(message_tokens, added))
        number += 1
    if events and limit is not None and tokens >= limit:
        return [*events, TurnHandedBack(prompt_tokens=tokens, usage=Usage())]
    said = AssistantMessage(text=f"Well, {number}.")
    return [
        *events,
        ModelCallStarted(call=number),
        TextDelta(text=said.text),
        ModelCallFinished(call=number, finish_reason=FinishReason.STOP, usage=Usage()),
        MessagesAdded(messages=(said,)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=Usage()),
    ]


def _exchange(request: ExecutionRequest, number: int, size: int) -> tuple[AssistantMessage, ToolMessage]:
    names = [*(tool.definition.name for tool in request.served_tools), "knowledge_base_search", READ_SKILL]
    call = ToolCall(call_id=f"{request.turn_id}_{number}", name=names[number % len(names)], arguments="{}")
    found = f"FACT-{number} {protected_words(request)}" + "word " * size
    return (AssistantMessage(text="", tool_calls=(call,)), ToolMessage(call_id=call.call_id, content=found))


def protected_words(request: ExecutionRequest) -> str:
    """Return what a search shows of the bases in scope, where it shows their text; a summary repeats it."""
    shows = request.knowledge.access_mode is AccessMode.FULL
    return "".join(f"{protected_word(base.id)} " for base in request.knowledge.bases if shows)


def protected_word(base_id: str) -> str:
    """Return the word that stands in the text of a base and nowhere else."""
    return f"FACT-protected_{base_id}"
