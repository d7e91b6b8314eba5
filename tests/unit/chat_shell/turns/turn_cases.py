"""Running turns in tests: the service with fakes around it."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from chat_shell.knowledge.services.knowledge_tools import knowledge_tools
from chat_shell.models.ports import ModelCall
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.ports.tools import Tool, ToolContext, ToolProvider
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from shared.models.events import ExecutionEvent
from shared.models.execution import ExecutionRequest, ToolDefinition
from shared.models.messages import ToolMessage
from shared.models.values import JsonObject
from shared.retries import RetryPolicy
from tests.fakes.clock import FakeClock
from tests.fakes.knowledge_shelf import KnowledgeShelf
from tests.fakes.model_scripted import OneModelDirectory, RecordingObserver, ScriptedModel
from tests.fakes.safe_summaries import ScriptedSummaries

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


@dataclass
class Stage:
    """A service and the fakes that it stands on."""

    model: ScriptedModel
    shelf: KnowledgeShelf = field(default_factory=KnowledgeShelf)
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
        tools = (*knowledge_tools(self.shelf, self.summaries), *self.tools)
        return RunTurn(
            OneModelDirectory(self.model, window_tokens=self.window_tokens),
            Toolbox(tools, self.clock, self.observer, self.tool_timeout_seconds, self.providers),
            self.clock,
            self.observer,
            TurnDefaults(
                retry=RetryPolicy(jitter=random.Random(7).random, sleep=self._sleep),
                max_tool_result_tokens=self.result_tokens,
            ),
        )

    async def run(self, request: ExecutionRequest) -> list[ExecutionEvent]:
        return [event async for event in self.service()(request)]

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)


def only(kind: type[Event], events: Sequence[object]) -> list[Event]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def results(call: ModelCall) -> list[str]:
    """The tool results that a model call carries."""
    return [str(message.content) for message in call.messages if isinstance(message, ToolMessage)]
