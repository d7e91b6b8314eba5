"""The tools that all servers offer, as they listed them last."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from chat_shell.tools.domain.definitions import check_list
from chat_shell.tools.domain.server_entry import ServerEntry
from chat_shell.tools.ports.tool_servers import CallFailure, ToolServer, ToolServerFailed, ToolServerObserver
from shared.models.execution import ServedTool
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard

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
