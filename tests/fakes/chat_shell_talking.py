"""A chat_shell whose model answers everything, and summarises what it finds marked as a fact."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from backend.conversations.domain.responses import StoredResponse
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    TextDelta,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, Message, ToolCall, ToolMessage
from shared.models.values import objects_in
from shared.prompts.message_order import messages_of_request
from shared.tokens import message_tokens
from tests.fakes.chat_shell_scripted import ScriptedChatShell
from tests.fakes.openai_house import TurnHouse

LONG = "word " * 800
"""About a thousand tokens."""
FACT = re.compile(r"FACT-\w+")

Talk = Callable[[ExecutionRequest], Sequence[ExecutionEvent] | Exception | None]


def facts_in(messages: Sequence[Message]) -> list[str]:
    """Return the facts that messages state, each once, in order."""
    return list(dict.fromkeys(FACT.findall(" ".join(message.model_dump_json() for message in messages))))


def whole_prompt(request: ExecutionRequest) -> tuple[Message, ...]:
    """Return all messages of the first model call of a request."""
    return (*messages_of_request(request), *request.added)


def prompt_tokens(request: ExecutionRequest) -> int:
    """Return the estimated size of a request."""
    return sum(map(message_tokens, whole_prompt(request)))


class TalkingChatShell(ScriptedChatShell):
    """Summarises by listing facts, and answers "Well."; a turn whose question names sizes calls a tool for each.

    "LOOK 100 200" makes it call a tool in two model calls, whose results have 100 and 200 words. It hands back as
    chat_shell does. `talk` may say otherwise: by events, by an error, or by None for what is usual.
    """

    def __init__(self, window_tokens: int = 32_000, output_tokens: int = 4_000, talk: Talk | None = None) -> None:
        super().__init__()
        self.card = ModelCard(name="demo-model", context_window_tokens=window_tokens, max_output_tokens=output_tokens)
        self.talk = talk

    @property
    def summaries(self) -> list[ExecutionRequest]:
        """The requests for summaries."""
        return [request for request in self.requests if request.purpose is Purpose.SUMMARY]

    @property
    def answers(self) -> list[ExecutionRequest]:
        """The requests for answers."""
        return [request for request in self.requests if request.purpose is Purpose.ANSWER]

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the one model."""
        return (self.card, self.card.model_copy(update={"name": "vendor/large", "context_window_tokens": 1_000_000}))

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        """Summarise, answer, or call tools."""
        self.requests.append(request)
        said = self.talk(request) if self.talk is not None else None
        if isinstance(said, Exception):
            raise said
        if said is None:
            is_summary = request.purpose is Purpose.SUMMARY
            said = answered(request, summary_of(request)) if is_summary else usual_events(request)
        for event in said:
            yield (event,)


def summary_of(request: ExecutionRequest) -> str:
    """Summarise by listing the facts."""
    return " ".join(facts_in(request.history)) or "Nothing of note."


def answered(request: ExecutionRequest, text: str) -> list[ExecutionEvent]:
    """Say a text in one model call."""
    number = 1 + sum(isinstance(message, AssistantMessage) for message in request.added)
    usage = Usage(input_tokens=prompt_tokens(request), output_tokens=message_tokens(AssistantMessage(text=text)))
    return [
        ModelCallStarted(call=number),
        TextDelta(text=text),
        ModelCallFinished(call=number, finish_reason=FinishReason.STOP, usage=usage),
        MessagesAdded(messages=(AssistantMessage(text=text),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=usage),
    ]


def usual_events(request: ExecutionRequest) -> list[ExecutionEvent]:
    """Call the tools that the question names, and answer."""
    asked = str(request.prompt).partition("LOOK ")[2].split()
    sizes = [int(size) for size in asked if size.isdigit()]
    done = sum(isinstance(message, ToolMessage) for message in request.added)
    limit = request.limits.hand_back_tokens
    events: list[ExecutionEvent] = []
    tokens = prompt_tokens(request)
    for place, size in enumerate(sizes[done:], done + 1):
        if events and limit is not None and tokens >= limit:
            return [*events, TurnHandedBack(prompt_tokens=tokens, usage=Usage())]
        call = ToolCall(call_id=f"look_{place}", name="look", arguments="{}")
        result = ToolMessage(call_id=call.call_id, content=f"FACT-{place} " + "word " * size)
        added = (AssistantMessage(text="", tool_calls=(call,)), result)
        usage = Usage(input_tokens=tokens, output_tokens=1)
        events += [
            ModelCallStarted(call=place),
            ModelCallFinished(call=place, finish_reason=FinishReason.TOOL_CALLS, usage=usage),
            MessagesAdded(messages=added),
        ]
        tokens += sum(map(message_tokens, added))
    if events and limit is not None and tokens >= limit:
        return [*events, TurnHandedBack(prompt_tokens=tokens, usage=Usage())]
    calls = len(sizes)
    return [
        *events,
        ModelCallStarted(call=calls + 1),
        TextDelta(text="Well."),
        ModelCallFinished(
            call=calls + 1, finish_reason=FinishReason.STOP, usage=Usage(input_tokens=tokens, output_tokens=2)
        ),
        MessagesAdded(messages=(AssistantMessage(text="Well."),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=Usage(input_tokens=tokens, output_tokens=2)),
    ]


@asynccontextmanager
async def talking(window_tokens: int = 8_000, talk: Talk | None = None, **fields: Any) -> AsyncGenerator[TurnHouse]:
    house = TurnHouse(chat_shell=TalkingChatShell(window_tokens, 1_000, talk), **fields)
    async with house.registry:
        yield house


def shell_of(house: TurnHouse) -> TalkingChatShell:
    assert isinstance(house.chat_shell, TalkingChatShell)
    return house.chat_shell


async def asked_until_compacted(house: TurnHouse, **first: Any) -> StoredResponse:
    """Ask until a part of the conversation was left out, each question with a fact of its own."""
    last = await house.ask(input=f"FACT-a0 {LONG}", **first)
    for number in range(1, 20):
        last = await house.ask(input=f"FACT-a{number} {LONG}", previous_response_id=last.id)
        if house.observer.compactions:
            return last
    raise AssertionError("nothing was left out")


def items_of(response: StoredResponse) -> list[str]:
    return [str(item["type"]) for item in objects_in(response.body["output"])]


def check_pairs(messages: Sequence[Message]) -> None:
    """Check that behind each message with calls stand their results, in call order, and no others anywhere."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert waiting
            assert message.call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call.call_id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    assert not waiting
