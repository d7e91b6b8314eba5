"""The turns that run in this process, each in a task of its own that outlives the client's connection."""

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.turns.domain.turn import JoinedTurn, Turn
from backend.turns.services.running_turn import RunningTurn, TurnRunner, TurnSignals

INTERRUPTION_SECONDS = 5.0
"""How long interrupted turns may take to store their ends, and released ones to end in another replica."""


class TurnRegistry:
    """Owns the tasks of running turns; use it as `async with`.

    Leaving the block waits `drain_seconds` for running turns and then interrupts those that are left: a turn of whose
    model call clients have got nothing is released, and another replica takes it over at once, or the next start of
    this one; any other ends incomplete with what was said.
    """

    def __init__(self, runner: TurnRunner, drain_seconds: float) -> None:
        self._runner = runner
        self._drain_seconds = drain_seconds
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[RunningTurn, None] = {}  # in their order
        self._preparing_count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._unread: set[str] = set()
        self._look_due = asyncio.Event()
        self.has_startable = False
        """Whether turns wait for nothing but a place here, as far as the newest look for them has shown."""
        self._owned: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        """Open the task group of the turns."""
        await self._group.__aenter__()
        self._runner.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for running turns, unless an error leaves the block; that error is raised unchanged."""
        if error is None:
            await self._wait_until_idle(self._drain_seconds)
            for running in self._running:
                running.interrupted.set()
            await self._wait_until_idle(INTERRUPTION_SECONDS)
        for task in self._tasks:
            task.cancel()
        try:
            await self._group.__aexit__(None, None, None)
        finally:
            await self._runner.stop()

    @property
    def running_count(self) -> int:
        """How many turns run now."""
        return len(self._tasks)

    @property
    def longest_drain_seconds(self) -> float:
        """How long leaving the registry may wait for turns."""
        return self._drain_seconds + INTERRUPTION_SECONDS

    def ask_to_pause(self, response_ids: Collection[str]) -> None:
        """Have those of these turns that run here pause between two model calls, where messages may enter them."""
        for running in self._running:
            if running.response.id in response_ids:
                running.boundary.set()

    def ask_for_look(self) -> None:
        """Have somebody look for turns that can begin."""
        self._look_due.set()

    async def look_due_within(self, seconds: float) -> None:
        """Return when waiting turns may be able to begin since the last call, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._look_due.wait()
        self._look_due.clear()

    @contextmanager
    def preparing(self) -> Generator[None]:
        """Count a turn that is being prepared in this block: leaving the registry waits for it, too."""
        self._preparing_count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._preparing_count -= 1
            self._update_idle()

    def own(self, response_id: str) -> None:
        """Count a turn as one that this process cares for; a running turn counts by itself."""
        self._owned[response_id] += 1

    def disown(self, response_id: str) -> None:
        """Take an `own` back."""
        self._owned[response_id] -= 1
        if not self._owned[response_id]:
            del self._owned[response_id]

    @contextmanager
    def owning(self, response_id: str) -> Generator[None]:
        """Own a turn in this block."""
        self.own(response_id)
        try:
            yield
        finally:
            self.disown(response_id)

    def owns(self, response_id: str) -> bool:
        """Say whether this process begins, runs or takes over the turn now."""
        return response_id in self._owned

    def start(self, turn: Turn | JoinedTurn) -> RunningTurn:
        """Run a turn, or join its lanes, in a task of its own."""
        running = RunningTurn(turn)
        self.own(turn.response.id)
        self.spawn(self._run(turn, running))
        return running

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run work in a task of its own; it must not raise. Leaving the registry waits for it."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        self._idle.clear()
        task.add_done_callback(self._forget)

    async def release(self, running: RunningTurn) -> None:
        """Drop the events of a turn that is not stored once it has ended; call it when its request reads no more."""
        if running.is_stored:
            return
        if running.has_ended:
            await self._runner.drop_events(running.response.id)
        else:
            self._unread.add(running.response.id)

    async def _wait_until_idle(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._update_idle()

    def _update_idle(self) -> None:
        if not self._preparing_count and not self._tasks:
            self._idle.set()

    async def _run(self, turn: Turn | JoinedTurn, running: RunningTurn) -> None:
        """Run a turn; its failure must not cancel the other turns of the task group."""
        self._running[running] = None
        ended: StoredResponse | None = None
        try:
            ended = await self._run_to_end(turn, running)
        finally:
            del self._running[running]
            running.set_result(ended)
            if self.has_startable or running.waited_for.is_set():
                self.ask_for_look()
        if turn.response.id in self._unread:
            self._unread.discard(turn.response.id)
            await self._runner.drop_events(turn.response.id)

    async def _run_to_end(self, turn: Turn | JoinedTurn, running: RunningTurn) -> StoredResponse | None:
        response_id = turn.response.id
        signals = TurnSignals(running.opened, running.interrupted, running.boundary, running.waited_for)
        outcome = await result_or_error(self._runner.run(turn, signals))
        self.disown(response_id)
        if outcome is None:
            outcome = await result_or_error(self._runner.wait_until_ended_elsewhere(response_id))
        if isinstance(outcome, BaseException):
            self._runner.report_defect(response_id, outcome)
        return outcome if isinstance(outcome, StoredResponse) else None
