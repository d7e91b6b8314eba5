"""The turns that run in this process: tasks of their own, not of the clients' connections."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.turns.ports.events import EventLog
from backend.turns.ports.observer import TurnObserver
from backend.turns.services.run_turn import RunTurn
from backend.turns.services.turn_ports import Turn, TurnPorts
from shared.errors import InternalError


class RunningTurn:
    """A turn under way, for the request that began it."""

    def __init__(self, response: StoredResponse, is_stored: bool, with_results: bool) -> None:
        self.response = response
        self.is_stored = is_stored
        self.with_results = with_results
        self.opened = asyncio.Event()
        self._ended = asyncio.Event()
        self._result: StoredResponse | None = None

    async def ended(self) -> StoredResponse:
        """Wait for the end; who stops waiting stops nothing.

        Raises:
            InternalError: the end could not be stored.
        """
        await self._ended.wait()
        if self._result is None:
            raise InternalError("The turn's end could not be stored.")
        return self._result

    def set_result(self, outcome: StoredResponse | None) -> None:
        """Wake who waits."""
        self._result = outcome
        self.opened.set()
        self._ended.set()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self._ended.is_set()


class TurnRegistry:
    """Owns the tasks. Used as `async with`: leaving waits for the turns that run, then cancels the rest.

    `drain_seconds` is how long leaving waits; what is cancelled then is closed as failed at the next start.
    """

    def __init__(self, ports: TurnPorts, run: RunTurn, drain_seconds: float) -> None:
        self._events: EventLog = ports.events
        self._observer: TurnObserver = ports.observer
        self._run = run
        self._drain_seconds = drain_seconds
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._unread: set[str] = set()

    async def __aenter__(self) -> Self:
        """Begin to take turns."""
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the running turns, for so long; an error that leaves with us stays as it is."""
        if error is None:
            await self._wait_until_idle()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    @property
    def running_count(self) -> int:
        """How many turns run now."""
        return len(self._tasks)

    @contextmanager
    def place(self) -> Generator[None]:
        """Hold a place for a turn that is being prepared: leaving waits for it, too."""
        self._starting += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._starting -= 1
            self._note_idle()

    def start(self, turn: Turn) -> RunningTurn:
        """Run a turn in a task of its own."""
        running = RunningTurn(turn.response, turn.is_stored, turn.with_results)
        task = self._group.create_task(self._supervise(turn, running))
        self._tasks.add(task)
        self._idle.clear()
        task.add_done_callback(self._forget)
        return running

    async def release(self, running: RunningTurn) -> None:
        """Say that the request which began the turn reads no more; events of one not stored go with it."""
        if running.is_stored:
            return
        if running.has_ended:
            await self._events.drop(running.response.id)
        else:
            self._unread.add(running.response.id)

    async def _wait_until_idle(self) -> None:
        try:
            async with asyncio.timeout(self._drain_seconds):
                await self._idle.wait()
        except TimeoutError:
            return

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._note_idle()

    def _note_idle(self) -> None:
        if not self._starting and not self._tasks:
            self._idle.set()

    async def _supervise(self, turn: Turn, running: RunningTurn) -> None:
        """Run a turn; no failure of one may reach the others."""
        outcome = await result_or_error(self._run(turn, running.opened))
        if isinstance(outcome, BaseException):
            self._observer.turn_broke(turn.response.id, outcome)
        running.set_result(outcome if isinstance(outcome, StoredResponse) else None)
        if turn.response.id in self._unread:
            self._unread.discard(turn.response.id)
            await self._events.drop(turn.response.id)
