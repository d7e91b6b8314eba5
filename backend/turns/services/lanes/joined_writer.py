"""Writing a joined response: the events of its lanes in one sequence, its checkpoints, and its end."""

import asyncio
from collections.abc import Sequence

from backend.conversations.domain.responses import Checkpoint, FinishedTurn, StoredResponse
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import Ending, ResponseBody
from backend.turns.domain.joined_output import JoinedProjection
from backend.turns.domain.lost_turn import UNSEEN_GAP
from backend.turns.domain.turn import JoinedTurn
from backend.turns.services.run.shown_events import ShownEvents
from backend.turns.services.turn_ports import TurnPorts


class JoinedWriter:
    """Writes one joined response. `taken` is set once another process has taken it over.

    Where the events that clients have got are lost, no further ones are shown: the response is stored all the same.
    """

    def __init__(self, ports: TurnPorts, turn: JoinedTurn) -> None:
        self._ports = ports
        self._turn = turn
        self._projection = JoinedProjection(turn.response.body, with_results=turn.with_results)
        if turn.begun is not None:
            self._projection.restore(turn.begun.events)
        self._shows = turn.begun is None or turn.begun.goes_on
        self._events = ShownEvents(ports, turn.response.id, self._projection.last_number, is_stored=turn.is_stored)
        self._checkpointed = self._projection.last_number
        self._lapses = self._lapses_checked = ports.stored.lease.lapses
        self._writing = asyncio.Lock()
        self.taken = asyncio.Event()
        self.is_cancelled = False

    async def open(self) -> None:
        """Append the first events, unless another process has done so."""
        if self._projection.last_number < 0:
            await self._append(self._projection.start())

    async def write(self, place: int, events: Sequence[LoggedEvent]) -> None:
        """Write events of the lane at this place."""
        async with self._writing:
            await self._append(self._projection.feed(place, events))

    async def end_lane(self, place: int, ended: ResponseBody | None) -> None:
        """Write the end of a lane; `ended` is its response, None where it was deleted."""
        async with self._writing:
            await self._append(self._projection.end_lane(place, ended))

    def new_checkpoint(self) -> Checkpoint | None:
        """Return the output so far, None where it is stored already; see `TurnWriter.new_checkpoint`."""
        is_new = self._events.newest != self._checkpointed or self._lapses_checked != self._ports.stored.lease.lapses
        if not self._turn.is_stored or not is_new or not self._shows:
            return None
        self._lapses = self._ports.stored.lease.lapses
        return Checkpoint(self._turn.response.hold, self._projection.output(), self._events.newest)

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Note that a checkpoint was stored."""
        self._checkpointed = checkpoint.last_event
        self._lapses_checked = self._lapses

    def note_taken(self) -> None:
        """Note that a checkpoint was refused."""
        self.taken.set()

    def build_ending(self) -> Ending:
        """Work out how the response ends, once all lanes have ended."""
        return self._projection.build_ending(is_cancelled=self.is_cancelled)

    async def finish(self, ending: Ending, pauses_seconds: Sequence[float]) -> StoredResponse | None:
        """Store the end, and show it; see `ShownEvents.finish`."""
        if self._turn.begun is not None and not self._shows:
            self._projection.continue_at(self._turn.begun.newest + UNSEEN_GAP)
        now = self._ports.clock.now()
        body, events = self._projection.finish(ending, int(now.timestamp()))
        changes = {
            "status": ending.status,
            "body": body,
            "log_end": 0,
            "items_end": 0,
            "last_event": self._projection.last_number,
        }
        response = self._turn.response.model_copy(update=changes)
        ended = FinishedTurn(response=response, entries=(), items=())
        return await self._events.finish(ended, events, pauses_seconds)

    async def _append(self, events: Sequence[LoggedEvent]) -> None:
        if self._shows:
            await self._events.append(events)
