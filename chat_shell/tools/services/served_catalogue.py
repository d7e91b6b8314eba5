"""The tools that all servers offer, as they listed them last."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from chat_shell.tools.domain.definitions import checked_list
from chat_shell.tools.domain.server_entry import ServerEntry
from chat_shell.tools.ports.tool_servers import CallFailure, ToolServer, ToolServerFailed, ToolServerObserver
from shared.models.execution import ServedTool
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard

REFRESH_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 1.0
"""After a failure; each further pause is twice as long, up to `REFRESH_SECONDS`."""

LISTING_SECONDS = 15.0
FIRST_LISTS_SECONDS = 3.0
"""How long who asks waits for servers that have not been asked yet; the backend waits no longer than 5 seconds."""

Sleep = Callable[[float], Awaitable[None]]


class _Shelf:
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
        self._shelves = sorted((_Shelf(entry, server) for entry, server in servers), key=lambda each: each.entry.name)
        self._skills = tuple(sorted(skills, key=lambda skill: skill.name))
        self._observer = observer
        self._sleep = sleep

    async def offered(self) -> OfferedTools:
        """Return what is known; a server that is away keeps the list that it gave last."""
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                for shelf in self._shelves:
                    await shelf.asked.wait()
        except TimeoutError:
            pass  # what is not known yet is marked so
        servers = tuple(
            ServerTools(server=shelf.entry.name, is_known=shelf.tools is not None, tools=shelf.tools or ())
            for shelf in self._shelves
        )
        return OfferedTools(servers=servers, skills=self._skills)

    async def run(self) -> None:
        """Keep the servers and their lists until cancelled."""
        async with asyncio.TaskGroup() as group:
            for shelf in self._shelves:
                group.create_task(shelf.server.run())
                group.create_task(self._keep_fresh(shelf))

    async def _keep_fresh(self, shelf: _Shelf) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._ask(shelf)
                pause_seconds = FIRST_PAUSE_SECONDS
                next_seconds = REFRESH_SECONDS
            except ToolServerFailed as failed:
                self._note_failure(shelf, failed.failure)
                next_seconds, pause_seconds = pause_seconds, min(2 * pause_seconds, REFRESH_SECONDS)
            finally:
                shelf.asked.set()
            await self._sleep(next_seconds)

    async def _ask(self, shelf: _Shelf) -> None:
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                listed = await shelf.server.list_tools()
        except TimeoutError:
            raise ToolServerFailed(CallFailure.TOO_SLOW) from None
        checked = await asyncio.to_thread(checked_list, shelf.entry, listed)
        if checked.tools != shelf.tools:
            self._observer.tools_listed(shelf.entry.name, len(checked.tools), checked.dropped)
        shelf.tools, shelf.is_failing = checked.tools, False

    def _note_failure(self, shelf: _Shelf, failure: CallFailure) -> None:
        if not shelf.is_failing:
            self._observer.listing_failed(shelf.entry.name, failure)
        shelf.is_failing = True
