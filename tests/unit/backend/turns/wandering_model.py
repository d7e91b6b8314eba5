"""A chat_shell for walks that is the real loop of a turn, over a model that writes down each body it is sent."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import orjson

from chat_shell.models.chat_completions.encoder import encode_call
from chat_shell.models.ports import ModelAnswerEnd, ModelCall, ModelFragment, TextFragment
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.domain.turn import RunTools, ToolsAnswered, TurnState
from chat_shell.turns.ports import Emit
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from shared.errors import Unavailable
from shared.models.events import ExecutionEvent, ModelCard, TurnEnd
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import Message, ToolCall, ToolMessage
from shared.models.served_tools import OfferedTools
from shared.prompts.knowledge_tools import tools_of_request
from shared.prompts.message_order import messages_of_request
from shared.prompts.skills import READ_SKILL
from shared.retries import RetryPolicy
from tests.fakes.chat_shell_talking import summary_of, whole_prompt
from tests.fakes.clock import FakeClock
from tests.fakes.model_scripted import RecordingObserver, end
from tests.unit.backend.turns.wandering_shell import GatedChatShell, protected_words
from tests.unit.chat_shell.turns.turn_cases import PlainText

_MESSAGES = b'"messages":['


@dataclass(frozen=True)
class Body:
    """A body at the model, for an execution; `first` is the number of messages of that execution's first call."""

    request: ExecutionRequest
    opening: bytes
    count: int
    first: int


def body_of(request: ExecutionRequest, call: ModelCall) -> Body:
    """Write a call down: the raw bytes from the beginning to the last message."""
    raw = encode_call(call)
    messages = orjson.loads(raw)["messages"]
    opening = raw[: raw.index(_MESSAGES) + len(_MESSAGES)] + orjson.dumps(messages)[1:-1]
    assert raw.startswith(opening)
    return Body(request, opening, len(messages), len(whole_prompt(request)))


class ModelShell(GatedChatShell):
    """Runs turns as chat_shell does; its events come one by one, and a model call only behind those before it."""

    def __init__(self, bodies: list[Body], requests: list[ExecutionRequest], offered: OfferedTools) -> None:
        super().__init__(requests, offered)
        self.bodies = bodies

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        """Run the turn, with a pause where one was asked for."""
        self.requests.append(request)
        place, self.waits_before = self.waits_before, None
        if "FAIL" in str(request.prompt) and request.purpose is Purpose.ANSWER:
            raise Unavailable("The model is away.")
        inbox: asyncio.Queue[ExecutionEvent] = asyncio.Queue(1)
        running = asyncio.create_task(self._run(request, inbox))
        try:
            for number in range(1_000_000):
                event = await inbox.get()
                if place is not None and (number == place or (number < place and isinstance(event, TurnEnd))):
                    self.waiting.set()
                    await self.gate.wait()
                yield (event,)
                inbox.task_done()
                if isinstance(event, TurnEnd):
                    return
        finally:
            running.cancel()

    async def _run(self, request: ExecutionRequest, inbox: asyncio.Queue[ExecutionEvent]) -> None:
        async def emit(event: ExecutionEvent) -> None:
            await inbox.put(event)
            await inbox.join()

        retry = RetryPolicy(jitter=lambda: 0.0, sleep=asyncio.sleep)
        model = _Model(self.bodies, request)
        directory = _Directory(model, self.card)
        run = RunTurn(
            directory, partial(_Tools), reminder_of_call, FakeClock(), RecordingObserver(), TurnDefaults(retry)
        )
        await run(request, emit)


class _Model:
    """Calls tools as the question says, or answers."""

    def __init__(self, bodies: list[Body], request: ExecutionRequest) -> None:
        self._bodies = bodies
        self._request = request

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment]:
        self._bodies.append(body_of(self._request, call))
        for fragment in self._answer(call):
            yield fragment

    def _answer(self, call: ModelCall) -> Sequence[ModelFragment]:
        request, number = self._request, 1 + sum(message.role == "assistant" for message in _own(self._request, call))
        if request.purpose is Purpose.SUMMARY:
            return (TextFragment(summary_of(request)), _end())
        if "CALL" in str(request.prompt) and request.tools and number == 1:
            name = request.tools[0].name
            return (_end(*(ToolCall(call_id=f"{request.turn_id}_f{n}", name=name, arguments="{}") for n in (1, 2))),)
        done = sum(isinstance(message, ToolMessage) for message in _own(request, call))
        if done < len(_sizes(request)) and call.parameters.tool_choice != "none":
            names = [*(tool.definition.name for tool in request.served_tools), "knowledge_base_search", READ_SKILL]
            name = names[number % len(names)]
            return (_end(ToolCall(call_id=f"{request.turn_id}_{number}", name=name, arguments="{}")),)
        return (TextFragment(f"Well, {number}."), _end())


def _end(*calls: ToolCall) -> ModelAnswerEnd:
    return end(*calls, input_tokens=None, output_tokens=None)


def _own(request: ExecutionRequest, call: ModelCall) -> Sequence[Message]:
    return call.messages[len(messages_of_request(request)) :]


def _sizes(request: ExecutionRequest) -> list[int]:
    return [int(word) for word in str(request.prompt).partition("LOOK ")[2].split() if word.isdigit()]


class _Tools:
    """Answers each call; a search finds a document."""

    def __init__(self, request: ExecutionRequest, card: ModelCard, prompt: Sequence[Message]) -> None:
        self.offered = tools_of_request(request)
        self._request = request

    def answer_text(self, state: TurnState, step: object) -> PlainText:
        return PlainText()

    async def run(self, state: TurnState, step: RunTools, emit: Emit) -> ToolsAnswered:
        done = sum(isinstance(message, ToolMessage) for message in state.added)
        return ToolsAnswered(tuple(self._result(call, place) for place, call in enumerate(step.own, done)))

    def _result(self, call: ToolCall, place: int) -> ToolMessage:
        found = f"FACT-{place} {protected_words(self._request)}" + "word " * (_sizes(self._request)[place])
        document = {"document": place + 1, "title": "t", "file_id": "f", "content": found}
        is_search = call.name == "knowledge_base_search"
        written = '{"documents": [' + _json(document) + "]}" if is_search else found
        return ToolMessage(call_id=call.call_id, content=written)


def _json(document: Mapping[str, object]) -> str:
    return ", ".join(f'"{name}": {orjson.dumps(value).decode()}' for name, value in document.items()).join("{}")


class _Directory:
    """Offers one model under every name."""

    def __init__(self, model: _Model, card: ModelCard) -> None:
        self._model = model
        self._card = card

    def cards(self) -> tuple[ModelCard, ...]:
        return (self._card,)

    def card(self, name: str) -> ModelCard:
        return self._card

    def model(self, name: str) -> _Model:
        return self._model
