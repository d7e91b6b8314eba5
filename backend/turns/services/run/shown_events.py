"""Showing events to clients, and storing the end of a turn: what holds for each kind of turn."""

from collections.abc import Sequence
from contextlib import suppress

from backend.conversations.domain.responses import FinishedTurn, StoredResponse
from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.services.retry_while_unavailable import retry_while_unavailable
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, Conflict, Unavailable


class ShownEvents:
    """Appends the events of one response; `newest` is the number of the newest one that was shown, -1 before any."""

    def __init__(self, ports: TurnPorts, response_id: str, newest: int, *, is_stored: bool) -> None:
        self._ports = ports
        self._response_id = response_id
        self._is_stored = is_stored
        self._are_lost = False
        self.newest = newest

    async def append(self, events: Sequence[LoggedEvent]) -> None:
        """Append events; where the event log stays away, the turn goes on: its answer is stored all the same.

        Readers in this process may get what comes nevertheless, so each event is offered. The first ones are an
        exception, because nobody could follow.
        """
        if not events:
            return
        if self._is_stored and not self._ports.stored.lease.is_held:
            await self._ports.stored.lease.wait_until_held()
        try:
            await self._ports.events.append(self._response_id, events)
        except Unavailable as error:
            if self.newest < 0:
                raise
            if not self._are_lost:
                self._ports.background.report("turn_events", error)
            self._are_lost = True
        self.newest = events[-1].sequence_number

    async def finish(
        self, ended: FinishedTurn, last_events: Sequence[LoggedEvent], pauses_seconds: Sequence[float]
    ) -> StoredResponse | None:
        """Store the end of a turn, then append its last events: clients get them for a stored end only.

        Return the stored response: where another process has ended the turn, as that one stored it; None where another
        process has taken the turn over and runs it. A turn that is not stored is returned as it ended.
        """
        try:
            stored = await _store_end(self._ports, ended, pauses_seconds) if self._is_stored else ended.response
        except BallastError:
            await self._close()
            raise
        if stored is not ended.response and stored != ended.response:
            self._ports.events.leave(self._response_id)
            return stored
        try:
            # where earlier events were lost, readers use the stored response
            if last_events[0].sequence_number == self.newest + 1:
                with suppress(Conflict):
                    await self.append(last_events)
        finally:
            await self._close()
        return stored

    async def _close(self) -> None:
        """Close the event log; where it cannot be reached, readers use the stored response."""
        with suppress(Conflict, Unavailable):
            await self._ports.events.close(self._response_id)


async def _store_end(ports: TurnPorts, ended: FinishedTurn, pauses_seconds: Sequence[float]) -> StoredResponse | None:
    async def store_end() -> StoredResponse | None:
        if await ports.stored.turns.finish(ended):
            return ended.response
        stored = await ports.stored.turns.find(ended.response.id)
        return None if stored is not None and not stored.status.is_terminal else stored or ended.response

    return await retry_while_unavailable(store_end, pauses_seconds)
