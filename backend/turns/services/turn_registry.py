"""The turns that run in this process, each in a task of its own that outlives the client's connection."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Self

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_object import total_tokens
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS
from backend.turns.domain.turn import JoinedTurn, Turn
from backend.turns.services.checkpoints import CHECKPOINT_SECONDS, CheckpointWriter
from backend.turns.services.join_lanes import join_lanes
from backend.turns.services.run_turn import TurnSignals, run_turn
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import Unavailable

INTERRUPTION_SECONDS = 5.0
"""How long interrupted turns may take to store their ends, and released ones to end in another replica."""

ELSEWHERE_SECONDS = 0.5
"""Pause between looks at a turn that another process runs."""


class RunningTurn:
    """A running turn, as the request that started it sees it.

    `opened` is set once its first events can be read. Who sets `interrupted` stops the turn; who sets `boundary` has it
    go on from its log before its next model call. `waited_for` says that others may wait for its end; of a turn that
    another process has begun, that one may have heard it.
    """

    def __init__(self, turn: Turn | JoinedTurn) -> None:
        self.response = turn.response
        self.is_stored = turn.is_stored
        self.with_results = turn.with_results
        self.opened = asyncio.Event()
        self.interrupted = asyncio.Event()
        self.boundary = asyncio.Event()
        self.waited_for = asyncio.Event()
        if turn.begun is not None:
            self.waited_for.set()
        self._ended = asyncio.Event()
        self._result: StoredResponse | None = None
        self._at_end: list[Callable[[], None]] = []

    def at_end(self, release: Callable[[], None]) -> None:
        """Call a function when the turn has ended, at once where it has already."""
        if self.has_ended:
            release()
        else:
            self._at_end.append(release)

    async def ended(self) -> StoredResponse:
        """Wait for the turn's end and return the response; cancelling the wait does not stop the turn.

        Raises:
            Unavailable: this process shuts down, and the turn goes on in another one.
        """
        await self._ended.wait()
        if self._result is None:
            raise Unavailable("The turn goes on in another process: read the response later.")
        return self._result

    def set_result(self, outcome: StoredResponse | None) -> None:
        """Set the ended response, or None if it is not known here, and wake all waiting tasks."""
        self._result = outcome
        self.opened.set()
        self._ended.set()
        for release in self._at_end:
            release()

    @property
    def has_ended(self) -> bool:
        """Whether the turn has ended."""
        return self._ended.is_set()

    @property
    def tokens(self) -> int:
        """How many tokens the provider has counted, in and out; 0 before the end, or where that is not known here."""
        return total_tokens(self._result.body) if self._result is not None else 0


class TurnRegistry:
    """Owns the tasks of running turns; use it as `async with`.

    Leaving the block waits `drain_seconds` for running turns and then interrupts those that are left: a turn of whose
    model call clients have got nothing is released, and another replica takes it over at once, or the next start of
    this one; any other ends incomplete with what was said.
    """

    def __init__(
        self,
        ports: TurnPorts,
        drain_seconds: float,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS,
    ) -> None:
        self._ports = ports
        self._drain_seconds = drain_seconds
        self._checkpoints = CheckpointWriter(ports.turns, ports.background, checkpoint_seconds)
        self._finish_pauses_seconds = finish_pauses_seconds
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: set[RunningTurn] = set()
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
        self._checkpoints.start()
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
            await self._checkpoints.stop()

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
            await self._drop(running.response.id)
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
        self._running.add(running)
        ended: StoredResponse | None = None
        try:
            ended = await self._ended(turn, running)
        finally:
            self._running.discard(running)
            running.set_result(ended)
            if self.has_startable or running.waited_for.is_set():
                self.ask_for_look()
        if turn.response.id in self._unread:
            self._unread.discard(turn.response.id)
            await self._drop(turn.response.id)

    async def _ended(self, turn: Turn | JoinedTurn, running: RunningTurn) -> StoredResponse | None:
        gates = TurnSignals(running.opened, running.interrupted, running.boundary, running.waited_for)
        outcome = await result_or_error(self._run_or_join(turn, gates))
        self.disown(turn.response.id)
        if outcome is None:
            outcome = await result_or_error(self._ended_elsewhere(turn))
        if isinstance(outcome, BaseException):
            self._ports.observer.turn_broke(turn.response.id, outcome)
        return outcome if isinstance(outcome, StoredResponse) else None

    async def _run_or_join(self, turn: Turn | JoinedTurn, gates: TurnSignals) -> StoredResponse | None:
        checkpoints, pauses_seconds = self._checkpoints, self._finish_pauses_seconds
        if isinstance(turn, JoinedTurn):
            return await join_lanes(self._ports, turn, gates, checkpoints, pauses_seconds)
        return await run_turn(self._ports, turn, gates, checkpoints, pauses_seconds)

    async def _ended_elsewhere(self, turn: Turn | JoinedTurn) -> StoredResponse | None:
        """Wait for the end of a turn that another process runs; None where the response was deleted."""
        while True:
            with suppress(Unavailable):
                stored = await self._ports.turns.find(turn.response.id)
                if stored is None or stored.status.is_terminal:
                    return stored
            await asyncio.sleep(ELSEWHERE_SECONDS)

    async def _drop(self, response_id: str) -> None:
        """Drop events; a failure must end neither the process nor the answer that has just been made."""
        await self._ports.background.attempt("drop_events", partial(self._ports.events.drop, response_id))
