"""A runner that plays a script, and knows who closed it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from chat_shell.turns.ports import Emit
from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import ExecutionRequest
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult

Script = Callable[[ExecutionRequest], AsyncGenerator[ExecutionEvent]]

CARDS = (
    ModelCard(name="demo-model", context_window_tokens=128_000, max_output_tokens=4_096),
    ModelCard(
        name="vendor/large", context_window_tokens=1_000_000, max_output_tokens=64_000, extra_parameters=("top_k", "x")
    ),
)


class ScriptedRunner:
    """Keeps the requests, counts what it produced, and how many of its turns live."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[ExecutionRequest] = []
        self.produced = 0
        self.live = 0
        self.closed = asyncio.Event()

    async def __call__(self, request: ExecutionRequest, emit: Emit) -> None:
        """Play the script."""
        self.requests.append(request)
        self.live += 1
        try:
            async with aclosing(self._script(request)) as events:
                async for event in events:
                    self.produced += 1
                    await emit(event)
        finally:
            self.live -= 1
            self.closed.set()


SUMMARY = SingleToolResult(
    text="说 what is safe", failed=False, structured={"decision": "answer", "risks": ["一", "b"]}
)


class ScriptedTool:
    """Answers calls of single tools with results in their order, or raises them; without one left with a summary.

    `gate` makes callers wait; `closed` is set when a call is over, cancelled or not.
    """

    def __init__(self, *results: SingleToolResult | Exception) -> None:
        self._results = list(results)
        self.calls: list[SingleToolCall] = []
        self.offers = OfferedTools(servers=(), skills=())
        self.begun = asyncio.Event()
        self.closed = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def list_offered(self) -> OfferedTools:
        """Return `offers`."""
        return self.offers

    async def __call__(self, call: SingleToolCall) -> SingleToolResult:
        """Answer the next call."""
        self.calls.append(call)
        self.begun.set()
        try:
            await self.gate.wait()
        finally:
            self.closed.set()
        result = self._results.pop(0) if self._results else SUMMARY
        if isinstance(result, Exception):
            raise result
        return result


def saying(*events: ExecutionEvent) -> Script:
    """Say these and end."""
    return saying_all(events)


def saying_all(events: Iterable[ExecutionEvent]) -> Script:
    """Say these, whatever their number, and end."""

    async def script(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        for event in events:
            yield event

    return script


def waiting_after(*events: ExecutionEvent) -> Script:
    """Say these, then nothing for ever."""

    async def script(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        for event in events:
            yield event
        await asyncio.Event().wait()

    return script


def failing_after(error: Exception, *events: ExecutionEvent) -> Script:
    """Say these, then raise."""

    async def script(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        for event in events:
            yield event
        raise error

    return script
