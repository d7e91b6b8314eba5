"""Closing turns that dead processes left running, and sending the heartbeat of this process."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.turns.domain.lost_turn import UNSEEN_GAP, RemainingLog, closed_turn
from backend.turns.domain.response_events import LoggedEvent
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import CorruptRecord, TurnRunning, Unavailable

BEAT_SECONDS = 2.0
STALE_AFTER = timedelta(seconds=9)
"""Four missed heartbeats and some delay; the clocks of the replicas must not differ by more."""

CLOSED_AT_ONCE = 32
"""Turns closed concurrently, and at most between two heartbeats: a replica that closes many must not look dead."""

QUIET_SECONDS = 0.5
"""A dead process appends nothing more: after this silence the newest kept event has been read."""


class Recovery:
    """Ends lost turns as failed, keeps their output so far, and frees their conversations.

    With `is_only_replica` every turn that is unfinished at the start is lost, because no other process can run it.
    With several replicas, the turns of a replica without a heartbeat for `STALE_AFTER` are lost.
    """

    def __init__(self, ports: TurnPorts, replica: str, *, is_only_replica: bool) -> None:
        self._ports = ports
        self._replica = replica
        self._is_only_replica = is_only_replica
        self._trusts_silence_from = datetime.min.replace(tzinfo=UTC)
        self._not_closable: set[str] = set()

    async def at_start(self) -> None:
        """Send the first heartbeat; an only replica also closes all lost turns before it serves requests.

        With several replicas the later heartbeats do that, because closing may wait for the events of each turn.

        Raises:
            Unavailable: the database is away.
        """
        await self._ports.turns.beat(self._replica, self._ports.clock.now())
        if self._is_only_replica:
            await self._close_lost(most=None)

    async def beat(self) -> None:
        """Send a heartbeat; with several replicas, also close some lost turns of the others.

        While the database is away no replica can send one: when it is back, each gets `STALE_AFTER` to do so.

        Raises:
            Unavailable: the database or the event log is away. The next heartbeat continues.
        """
        try:
            await self._ports.turns.beat(self._replica, self._ports.clock.now())
        except Unavailable:
            self._trusts_silence_from = self._ports.clock.now() + STALE_AFTER
            raise
        if not self._is_only_replica and self._ports.clock.now() >= self._trusts_silence_from:
            await self._close_lost(most=CLOSED_AT_ONCE)

    async def _close_lost(self, most: int | None) -> None:
        """Close lost turns, the oldest first."""
        since = None if self._is_only_replica else self._ports.clock.now() - STALE_AFTER
        unfinished = await self._ports.turns.unfinished(alive_since=since)
        lost = [response for response in unfinished if response.id not in self._not_closable][:most]
        for first in range(0, len(lost), CLOSED_AT_ONCE):
            await self._close_together(lost[first : first + CLOSED_AT_ONCE])

    async def _close_together(self, lost: Sequence[StoredResponse]) -> None:
        async with asyncio.TaskGroup() as group:
            closing = [group.create_task(result_or_error(self._close(response))) for response in lost]
        for response, task in zip(lost, closing, strict=True):
            self._handle_outcome(response, task.result())

    def _handle_outcome(self, response: StoredResponse, outcome: BaseException | None) -> None:
        """Raise `Unavailable`, so that the turn is tried again; after another error the turn is skipped later."""
        if isinstance(outcome, Unavailable):
            raise outcome
        if outcome is not None:
            self._not_closable.add(response.id)
            self._ports.observer.turn_broke(response.id, outcome)

    async def _close(self, response: StoredResponse) -> None:
        conversations, events = self._ports.conversations, self._ports.events
        log = await self._remaining_log(response.conversation_id)
        newest = await conversations.items(response.conversation_id, after=None, limit=1, descending=True)
        is_kept = await events.exists(response.id)
        number = await self._newest_kept(response) if is_kept else response.last_event + UNSEEN_GAP
        now = self._ports.clock.now()
        ended, last_events = closed_turn(response, log, newest[0] if newest else None, now, number)
        try:
            was_running = await self._ports.turns.finish(ended)
        except TurnRunning:
            return
        if was_running and is_kept:
            await self._tell(response.id, last_events)

    async def _remaining_log(self, conversation_id: str) -> RemainingLog:
        """Read the log; an unreadable one must not block its conversation, whose next turn reports the error."""
        try:
            log = await self._ports.conversations.log(conversation_id)
        except CorruptRecord:
            found = await self._ports.conversations.find(conversation_id)
            return RemainingLog(None, found.log_length if found is not None else 0)
        return RemainingLog(log, len(log))

    async def _tell(self, response_id: str, last_events: tuple[LoggedEvent, ...]) -> None:
        await self._ports.events.append(response_id, last_events)
        await self._ports.events.close(response_id)

    async def _newest_kept(self, response: StoredResponse) -> int:
        newest = response.last_event
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                async for batch in self._ports.events.read(response.id, newest):
                    if not batch:
                        break
                    newest = batch[-1].sequence_number
        except TimeoutError:
            """No further event has come."""
        return newest
