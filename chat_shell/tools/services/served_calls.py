"""Tools of the operator's servers: which there are, and calls within the limits, with words for what goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from chat_shell.tools.domain.definitions import check_list
from chat_shell.tools.domain.server_entry import ServerEntry
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.ports.tools import (
    CallFailure,
    CallResult,
    ToolContext,
    ToolServer,
    ToolServerFailed,
    ToolServerObserver,
)
from shared.clock import Clock
from shared.models.execution import ServedTool
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
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


REFRESH_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 1.0
"""After a failure; each further pause is twice as long, up to `REFRESH_SECONDS`."""

LISTING_SECONDS = 15.0
FIRST_LISTS_SECONDS = 3.0
"""How long a caller waits for servers that have not been asked yet; the backend waits no longer than 5 seconds."""

Sleep = Callable[[float], Awaitable[None]]


class _CachedTools:
    """What is known of one server."""

    def __init__(self, entry: ServerEntry, server: ToolServer) -> None:
        self.entry = entry
        self.server = server
        self.tools: tuple[ServedTool, ...] | None = None
        self.asked = asyncio.Event()
        self.is_failing = False


class ToolServerCatalogue:
    """Asks the servers for their tools, again and again; what one does delays no other."""

    def __init__(
        self,
        servers: Sequence[tuple[ServerEntry, ToolServer]],
        skills: tuple[SkillCard, ...],
        observer: ToolServerObserver,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._cached = sorted(
            (_CachedTools(entry, server) for entry, server in servers), key=lambda each: each.entry.name
        )
        self._skills = tuple(sorted(skills, key=lambda skill: skill.name))
        self._observer = observer
        self._sleep = sleep

    async def list_offered(self) -> OfferedTools:
        """Return what is known; a server that is away keeps the list that it gave last."""
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                for cached in self._cached:
                    await cached.asked.wait()
        except TimeoutError:
            pass  # what is not known yet is marked so
        servers = tuple(
            ServerTools(server=cached.entry.name, is_known=cached.tools is not None, tools=cached.tools or ())
            for cached in self._cached
        )
        return OfferedTools(servers=servers, skills=self._skills)

    async def run(self) -> None:
        """Keep the servers and their lists until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cached in self._cached:
                group.create_task(cached.server.run())
                group.create_task(self._keep_fresh(cached))

    async def _keep_fresh(self, cached: _CachedTools) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._ask(cached)
                pause_seconds = FIRST_PAUSE_SECONDS
                next_seconds = REFRESH_SECONDS
            except ToolServerFailed as failed:
                self._note_failure(cached, failed.failure)
                next_seconds, pause_seconds = pause_seconds, min(2 * pause_seconds, REFRESH_SECONDS)
            finally:
                cached.asked.set()
            await self._sleep(next_seconds)

    async def _ask(self, cached: _CachedTools) -> None:
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                listed = await cached.server.list_tools()
        except TimeoutError:
            raise ToolServerFailed(CallFailure.TOO_SLOW) from None
        checked = await asyncio.to_thread(check_list, cached.entry, listed)
        if checked.tools != cached.tools:
            self._observer.tools_listed(cached.entry.name, len(checked.tools), checked.dropped)
        cached.tools, cached.is_failing = checked.tools, False

    def _note_failure(self, cached: _CachedTools, failure: CallFailure) -> None:
        if not cached.is_failing:
            self._observer.note_failed_listing(cached.entry.name, failure)
        cached.is_failing = True
