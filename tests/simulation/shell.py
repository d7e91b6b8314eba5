"""A chat_shell of a simulation: the product's loop of turns and its end of the link, over a model that fails."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime
from typing import Any, cast

import orjson

from chat_shell.foundation.services.admission import Admission
from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.models.chat_completions.encoder import encode_call
from chat_shell.models.ports import ModelAnswerEnd, ModelCall, ModelFragment, TextFragment
from chat_shell.servers.grpc.caller_link import CallerLink
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.domain.turn import CallModel, RunTools, ToolsAnswered, TurnState
from chat_shell.turns.ports import Emit
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from chat_shell.turns.services.turn_service import TurnService
from protos.execution.v1 import chat_shell_pb2
from shared.clock import Clock
from shared.errors import ModelRateLimited, ModelStalled, ModelStreamCut, ModelUnavailable
from shared.models.events import ExecutionEvent, FinishReason, ModelCard, TextDelta, Usage
from shared.models.execution import ExecutionRequest, ToolDefinition
from shared.models.messages import Message, ToolCall, ToolMessage, UserMessage
from shared.retries import RetryPolicy
from shared.wire import card_to_proto
from tests.chaos.model import LOOK_UP, Order, order_in
from tests.chaos.records import SentPrompt
from tests.chaos.schedule import FaultKind
from tests.fakes.chat_shell_runner import ScriptedTool
from tests.fakes.model_scripted import RecordingObserver
from tests.simulation.link import MAX_MESSAGE_BYTES, Served
from tests.simulation.world import MemberLoop, World

MODEL = "demo-model"
CARD = ModelCard(name=MODEL, context_window_tokens=128_000, max_output_tokens=8_000)
MODELS = chat_shell_pb2.ListModelsResponse(models=[card_to_proto(CARD)]).SerializeToString()
IDLE_SECONDS = 60.0
_MESSAGES = b'"messages":['
_TOOL = ToolDefinition(name=LOOK_UP, description=None, parameters={"type": "object", "properties": {}}, strict=None)


class ModelServer:
    """The provider, and what has reached it; while `fault` is set, half of the calls end in it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.fault: FaultKind | None = None
        self.prompts: list[SentPrompt] = []
        self.tool_runs: Counter[str] = Counter()
        self.running: Counter[str] = Counter()

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment]:
        """Say what the turn's own words ask for."""
        order, results = _order_of(call.messages)
        self._note(call, order, results)
        fault = self.fault if self.fault is not None and self._world.dice.random() < 0.5 else None
        await asyncio.sleep(self._world.between(0.01, 0.2))
        if fault is FaultKind.MODEL_500:
            raise ModelUnavailable("The provider answered 500.")
        if fault is FaultKind.MODEL_429:
            raise ModelRateLimited("The provider answered 429.", retry_after_seconds=1)
        if order.call == LOOK_UP and not results:
            made = ToolCall(call_id=f"call_{order.key}", name=LOOK_UP, arguments='{"what": "tide"}')
            yield _end(made)
            return
        async for fragment in self._say(order, fault):
            yield fragment

    async def _say(self, order: Order, fault: FaultKind | None) -> AsyncGenerator[ModelFragment]:
        deltas = order.deltas()
        last = int(self._world.dice.random() * len(deltas))
        slow = 5.0 if fault is FaultKind.MODEL_SLOW else 1.0
        for place, text in enumerate(deltas):
            if place == last and fault is FaultKind.MODEL_STALL:
                await asyncio.sleep(IDLE_SECONDS)
                raise ModelStalled("The model stalled.")
            if place == last and fault is FaultKind.MODEL_CUT:
                raise ModelStreamCut("The stream of the model was cut.")
            await asyncio.sleep(slow * self._world.between(0.5, 1.5) * order.pause_milliseconds / 1000)
            yield TextFragment(text=text)
        yield _end()

    def _note(self, call: ModelCall, order: Order, results: int) -> None:
        body = encode_call(call)
        messages = orjson.dumps(orjson.loads(body)["messages"])
        opening = body[: body.index(_MESSAGES) + len(_MESSAGES)] + messages[1:-1]
        self.prompts.append(SentPrompt(order.key, call.cache_key, opening, results))
        self._world.note(f"model {order.key} results {results} bytes {len(opening)}")


def _end(*calls: ToolCall) -> ModelAnswerEnd:
    reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return ModelAnswerEnd(tool_calls=calls, finish_reason=reason, usage=Usage(input_tokens=10, output_tokens=5))


def _order_of(messages: Sequence[Message]) -> tuple[Order, int]:
    results = 0
    for message in reversed(messages):
        results += isinstance(message, ToolMessage)
        if isinstance(message, UserMessage) and (order := order_in(str(message.content))):
            return order, results
    return Order("unknown", 3, 50), results


class _Directory:
    """Offers the one model."""

    def __init__(self, model: ModelServer) -> None:
        self._model = model

    def cards(self) -> tuple[ModelCard, ...]:
        return (CARD,)

    def card(self, name: str) -> ModelCard:
        return CARD

    def model(self, name: str) -> ModelServer:
        return self._model


class _PlainText:
    """Implements `AnswerText`: everything is shown as it is."""

    def feed(self, text: str) -> Iterable[ExecutionEvent]:
        return (TextDelta(text=text),)

    def flush(self) -> Iterable[ExecutionEvent]:
        return ()

    def take_calls(self) -> tuple[ToolCall, ...]:
        return ()


class _Tools:
    """Implements `TurnTools` with one tool, and counts its finished calls."""

    offered = (_TOOL,)

    def __init__(self, world: World, model: ModelServer, request: ExecutionRequest) -> None:
        self._world, self._model, self._request = world, model, request

    def answer_text(self, state: TurnState, step: CallModel) -> _PlainText:
        return _PlainText()

    async def run(self, state: TurnState, step: RunTools, emit: Emit) -> ToolsAnswered:
        await asyncio.sleep(self._world.between(0.01, 0.5))
        self._model.tool_runs[self._request.turn_id] += len(step.own)
        self._world.note(f"tool of {self._request.turn_id}")
        return ToolsAnswered(tuple(ToolMessage(call_id=call.call_id, content="High water.") for call in step.own))


class ShellLife:
    """One life of a chat_shell."""

    def __init__(self, world: World, name: str, model: ModelServer, clock: Clock) -> None:
        self.loop = MemberLoop(world, name)
        self.observer = RecordingObserver()
        self._name = f"{name} since {world.now:.3f}"
        self._bounds = MessageBounds(MAX_MESSAGE_BYTES, 16 * MAX_MESSAGE_BYTES)
        defaults = TurnDefaults(RetryPolicy(jitter=world.dice.random))

        def open_tools(request: ExecutionRequest, card: ModelCard, prompt: Sequence[Message]) -> _Tools:
            return _Tools(world, model, request)

        directory = _Directory(model)
        run = RunTurn(directory, open_tools, reminder_of_call, clock, self.observer, defaults)
        self._turns = TurnService(run, ScriptedTool(), directory.cards, clock, Admission())

    async def serve(self, context: Served) -> None:
        """Serve a caller, as the method `Connect` does."""
        link = CallerLink(self._turns, self._bounds, "Execute", knows_newer=True)
        await link.serve(cast(Any, context), self._name)
