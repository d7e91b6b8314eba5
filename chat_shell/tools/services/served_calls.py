"""Calls of the tools of one server: within its limits, and with words for whatever goes wrong."""

import asyncio
from collections.abc import Mapping

from chat_shell.tools.domain.server_entry import ServerEntry
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.ports.tool_servers import (
    CallFailure,
    CallResult,
    ToolServer,
    ToolServerFailed,
    ToolServerObserver,
)
from chat_shell.tools.ports.tools import ToolContext
from shared.clock import Clock
from shared.models.execution import ServedTool
from shared.models.values import JsonObject
from shared.prompts import tool_servers as texts
from shared.prompts.tool_results import within_tokens
from shared.tokens import ASCII_CHARACTERS_PER_TOKEN, estimate_tokens
from shared.tracing import SpanKind, span_of

MAX_CALLS_AT_ONCE = 16
"""Of one server. Further calls wait, which counts towards their time."""

CANCELLED = "cancelled"

_WORDS: Mapping[CallFailure, str] = {
    CallFailure.AWAY: texts.SERVER_AWAY,
    CallFailure.BROKE: texts.SERVER_BROKE,
    CallFailure.TOO_LARGE: texts.RESULT_TOO_LARGE,
    CallFailure.TOO_SLOW: texts.SERVER_TOO_SLOW,
    CallFailure.UNREADABLE: texts.RESULT_UNREADABLE,
}


class ServerCalls:
    """Implements `ToolProvider` for one server."""

    def __init__(self, entry: ServerEntry, server: ToolServer, clock: Clock, observer: ToolServerObserver) -> None:
        self._entry = entry
        self._server = server
        self._clock = clock
        self._observer = observer
        self._places = asyncio.Semaphore(MAX_CALLS_AT_ONCE)

    @property
    def accepts_restricted(self) -> bool:
        """Whether the operator lets this server be called in restricted turns."""
        return self._entry.accepts_restricted

    async def run(self, served: ServedTool, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Run one call; whatever the server does, the answer is a bounded text."""
        if not self._entry.may_call(served.tool):
            return ToolAnswer(text=texts.TOOL_GONE, failed=True)
        started, outcome = self._clock.now(), CANCELLED
        try:
            result = await self._call(served.tool, arguments)
            outcome = "error" if result.failed else "ok"
            return _answer(self._entry, result, context.result_tokens)
        except ToolServerFailed as failed:
            outcome = failed.failure.value
            return ToolAnswer(text=_WORDS[failed.failure], failed=True)
        finally:
            seconds = (self._clock.now() - started).total_seconds()
            self._observer.tool_called(self._entry.name, served.tool, outcome, seconds)

    async def _call(self, tool: str, arguments: JsonObject) -> CallResult:
        attributes = {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": tool,
            "ballast.tool_server": self._entry.name,
        }
        try:
            with span_of(f"tools/call {tool}", attributes, SpanKind.CLIENT):
                async with asyncio.timeout(self._entry.timeout_seconds), self._places:
                    return await self._server.call(tool, arguments)
        except TimeoutError:
            raise ToolServerFailed(CallFailure.TOO_SLOW) from None


def _answer(entry: ServerEntry, result: CallResult, result_tokens: int) -> ToolAnswer:
    """Return a result that is cut here and nowhere else, so that its one line says how much is left out of the whole.

    A token has at most as many bytes as one of ASCII.
    """
    room_tokens = max(0, result_tokens - estimate_tokens(texts.frame_result(entry.name, "")))
    limit_tokens = min(room_tokens, entry.max_result_bytes // ASCII_CHARACTERS_PER_TOKEN)
    text = within_tokens(texts.encodable(result.text), limit_tokens) if result.text.strip() else texts.RESULT_EMPTY
    return ToolAnswer(text=texts.frame_result(entry.name, text), failed=result.failed)
