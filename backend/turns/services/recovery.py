"""Closing what dead processes left running, and showing that this one lives."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import repeat_forever, result_or_error
from backend.turns.domain.lost_turn import UNSEEN_GAP, KeptLog, closed_turn
from backend.turns.domain.response_events import LoggedEvent
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import CorruptRecord, TurnRunning, Unavailable

BEAT_SECONDS = 2.0
STALE_AFTER = timedelta(seconds=9)
"""Four missed beats and some delay; the clocks of the replicas must agree better than that."""

CLOSED_AT_ONCE = 32
"""Side by side, and between two beats no more: a replica that closes the turns of many must not look dead itself."""

QUIET_SECONDS = 0.5
"""A dead process appends nothing more: when so long nothing comes, the newest kept event has been read."""


class Recovery:
    """Ends lost turns as failed, what they had said kept, and frees their conversations.

    `is_only_replica`: nobody else can be running a turn, so every unfinished one at the start is lost. With
    several replicas those of one that has not been seen for a while are.
    """

    def __init__(self, ports: TurnPorts, replica: str, *, is_only_replica: bool) -> None:
        self._ports = ports
        self._replica = replica
        self._is_only_replica = is_only_replica
        self._trusts_silence_from = datetime.min.replace(tzinfo=UTC)
        self._not_closable: set[str] = set()

    async def at_start(self) -> None:
        """Show that this replica lives; the only one also closes what is lost before anybody asks for it.

        With several replicas that is for the beats: there, closing may wait for the events of each turn.

        Raises:
            Unavailable: the database is away.
        """
        await self._ports.turns.beat(self._replica, self._ports.clock.now())
        if self._is_only_replica:
            await self._close_lost(most=None)

    async def keep_alive(self) -> None:
        """Beat until cancelled, the first time at once."""
        await repeat_forever(self.beat, BEAT_SECONDS)

    async def beat(self) -> None:
        """Show that this replica lives; with several replicas, also close some of what others have lost.

        While the database is away no replica can be seen: when it is back, each gets time to show itself.

        Raises:
            Unavailable: the database or the event log is away. The next beat may do what is left.
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
            self._judge(response, task.result())

    def _judge(self, response: StoredResponse, outcome: BaseException | None) -> None:
        """Let what is away be met again; a turn that cannot be closed stands in the way of no other."""
        if isinstance(outcome, Unavailable):
            raise outcome
        if outcome is not None:
            self._not_closable.add(response.id)
            self._ports.observer.turn_broke(response.id, outcome)

    async def _close(self, response: StoredResponse) -> None:
        conversations, events = self._ports.conversations, self._ports.events
        log = await self._kept_log(response.conversation_id)
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

    async def _kept_log(self, conversation_id: str) -> KeptLog:
        """Read the log; one that cannot be read must not hold its conversation, whose next turn tells of it."""
        try:
            log = await self._ports.conversations.log(conversation_id)
        except CorruptRecord:
            found = await self._ports.conversations.find(conversation_id)
            return KeptLog(None, found.log_length if found is not None else 0)
        return KeptLog(log, len(log))

    async def _tell(self, response_id: str, last_events: tuple[LoggedEvent, ...]) -> None:
        await self._ports.events.append(response_id, last_events)
        await self._ports.events.close(response_id)

    async def _newest_kept(self, response: StoredResponse) -> int:
        newest = response.last_event
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                async for batch in self._ports.events.read(response.id, newest):
                    newest = batch[-1].sequence_number
        except TimeoutError:
            """Nothing more has come."""
        return newest
