"""Running turns in tests: the service with fakes around it."""

import asyncio
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from chat_shell.knowledge.services.knowledge_tools import build_knowledge_tools
from chat_shell.models.ports import ModelCall
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.ports.tools import Tool, ToolContext, ToolProvider
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.domain.turn import CallModel, RunTools, ToolsAnswered, TurnState
from chat_shell.turns.ports import Emit, OpenTools, WriteReminder
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from chat_shell.turns.services.turn_toolbox import TurnToolbox
from shared.models.events import ExecutionEvent, TextDelta
from shared.models.execution import ExecutionRequest, ToolDefinition
from shared.models.messages import ToolCall, ToolMessage
from shared.models.values import JsonObject
from shared.retries import RetryPolicy
from tests.fakes.clock import FakeClock
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_scripted import OneModelDirectory, RecordingObserver, ScriptedModel
from tests.fakes.safe_summaries import ScriptedSummaries

DOCUMENTS = json.dumps({"documents": [{"document": 4, "title": "t", "file_id": "f", "content": "c"}]})
Event = TypeVar("Event")


class FunctionTool:
    """A tool of a test: `run` may be replaced by any coroutine function."""

    accepts_restricted = False

    def __init__(self, name: str, answer: ToolAnswer | None = None):
        self.definition = ToolDefinition(name=name, description=None, parameters=None, strict=None)
        self.answer = answer or ToolAnswer(text=f"{name} done")
        self.calls: list[JsonObject] = []

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        self.calls.append(arguments)
        return self.answer


class Hanging(FunctionTool):
    """A tool that never ends by itself."""

    def __init__(self, name: str):
        super().__init__(name)
        self.begun = asyncio.Event()
        self.cancelled = False

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled = True
        return self.answer


class PlainText:
    """Implements `AnswerText`: everything is shown as it is."""

    def feed(self, text: str) -> Iterable[ExecutionEvent]:
        return (TextDelta(text=text),)

    def flush(self) -> Iterable[ExecutionEvent]:
        return ()

    def take_calls(self) -> tuple[ToolCall, ...]:
        return ()


class EchoingTools:
    """Implements `TurnTools` with results that repeat the arguments."""

    offered = ()

    def answer_text(self, state: TurnState, step: CallModel) -> PlainText:
        return PlainText()

    async def run(self, state: TurnState, step: RunTools, emit: Emit) -> ToolsAnswered:
        return ToolsAnswered(tuple(ToolMessage(call_id=each.call_id, content=each.arguments) for each in step.own))


@dataclass
class Stage:
    """A service and the fakes that it stands on."""

    model: ScriptedModel
    stored: KnowledgeInMemory = field(default_factory=KnowledgeInMemory)
    tools: Sequence[Tool] = ()
    window_tokens: int = 100_000
    tool_timeout_seconds: float = 30.0
    result_tokens: int = 15_000
    providers: Mapping[str, ToolProvider] = field(default_factory=dict[str, ToolProvider])
    clock: FakeClock = field(default_factory=FakeClock)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    slept: list[float] = field(default_factory=list[float])
    summaries: ScriptedSummaries = field(default_factory=ScriptedSummaries)

    def service(self) -> RunTurn:
        tools = (*build_knowledge_tools(self.stored, self.summaries), *self.tools)
        toolbox = Toolbox(tools, self.clock, self.observer, self.tool_timeout_seconds, self.providers)
        return self.service_with(partial(TurnToolbox, toolbox, self.result_tokens), reminder_of_call)

    def service_with(self, open_tools: OpenTools, write_reminder: WriteReminder) -> RunTurn:
        return RunTurn(
            OneModelDirectory(self.model, window_tokens=self.window_tokens),
            open_tools,
            write_reminder,
            self.clock,
            self.observer,
            TurnDefaults(retry=RetryPolicy(jitter=random.Random(7).random, sleep=self._sleep)),
        )

    async def run(self, request: ExecutionRequest) -> list[ExecutionEvent]:
        return await events_of(self.service(), request)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)


async def events_of(service: RunTurn, request: ExecutionRequest) -> list[ExecutionEvent]:
    """All events of a turn."""
    events: list[ExecutionEvent] = []

    async def emit(event: ExecutionEvent) -> None:
        events.append(event)

    await service(request, emit)
    return events


def only(kind: type[Event], events: Sequence[object]) -> list[Event]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def results(call: ModelCall) -> list[str]:
    """The tool results that a model call carries."""
    return [str(message.content) for message in call.messages if isinstance(message, ToolMessage)]
