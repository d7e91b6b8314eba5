"""Running a joined response: its lanes run by themselves, and their events are followed until all have ended."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress

import orjson

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_events import TERMINAL_TYPES, LoggedEvent
from backend.openai_api.domain.response_object import Ending, ResponseBody
from backend.streams.services.follow_events import FollowEvents
from backend.streams.services.retry_while_unavailable import retry_while_unavailable
from backend.turns.domain.turn import JoinedTurn
from backend.turns.services.lanes.joined_writer import JoinedWriter
from backend.turns.services.responses import Responses
from backend.turns.services.run.checkpoints import CheckpointWriter
from backend.turns.services.run.run_turn import end_with_defect, is_taken, wait_for_signal
from backend.turns.services.running_turn import TurnSignals
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import NotFound, TurnTaken, Unavailable

LANES_END_SECONDS = 2.0
"""How long interrupted lanes may take to end before their joined response is left to another process."""


async def join_lanes(
    ports: TurnPorts,
    turn: JoinedTurn,
    turn_signals: TurnSignals,
    checkpoints: CheckpointWriter,
    pauses_seconds: Sequence[float],
) -> StoredResponse | None:
    """Join the lanes of a turn until all have ended, and return the joined response.

    None where another process goes on with it, or is to do so. A defect ends the joined response, and not its lanes.
    """
    writer = JoinedWriter(ports, turn)
    lanes = _Lanes(ports, turn, writer, pauses_seconds)
    outcome = await result_or_error(_join(lanes, turn_signals, checkpoints))
    response = None
    if isinstance(outcome, BaseException):
        ending = None if is_taken(outcome) else end_with_defect(ports, turn.response.id, outcome)
    else:
        ending = outcome
    if ending is not None:
        response = await writer.finish(ending, pauses_seconds)
    elif not isinstance(outcome, BaseException):
        with suppress(Unavailable):
            await ports.stored.turns.release(turn.response.hold)
    if response is None:
        ports.events.leave(turn.response.id)
    return response


async def _join(lanes: "_Lanes", turn_signals: TurnSignals, checkpoints: CheckpointWriter) -> Ending | None:
    """Return how the joined response ends; None where this process must stop before its lanes have ended."""
    writer = lanes.writer
    async with asyncio.TaskGroup() as group:
        await writer.open()
        turn_signals.opened.set()
        stopped = group.create_task(_set(turn_signals.interrupted))
        watchers = [stopped, group.create_task(lanes.note_cancellation()), group.create_task(_stop_when_taken(writer))]
        with checkpoints.following(writer):
            following = group.create_task(lanes.follow_all())
            await asyncio.wait((following, stopped), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((following,), timeout=LANES_END_SECONDS)
        has_ended = following.done()
        for task in (*watchers, following):
            task.cancel()
    return writer.build_ending() if has_ended else None


class _Lanes:
    """The lanes of one joined response, wherever they run."""

    def __init__(
        self, ports: TurnPorts, turn: JoinedTurn, writer: JoinedWriter, pauses_seconds: Sequence[float]
    ) -> None:
        self._ports = ports
        self._turn = turn
        self._pauses_seconds = pauses_seconds
        self._events = FollowEvents(ports.stored.turns, ports.events)
        self._responses = Responses(ports, ports.stored.access())
        self.writer = writer

    async def follow_all(self) -> None:
        """Write the events of all lanes as they come, until all have ended."""
        async with asyncio.TaskGroup() as group:
            for place, lane in enumerate(self._turn.lanes):
                group.create_task(self._follow(place, lane))

    async def note_cancellation(self) -> None:
        """Note when the joined response is cancelled; who cancels it stops the lanes, too."""
        await wait_for_signal(self._ports, self._turn.response.id)
        self.writer.is_cancelled = True

    async def _follow(self, place: int, lane: StoredResponse | None) -> None:
        ended = None
        if lane is not None:
            newest: LoggedEvent | None = None
            async with aclosing(self._events(lane, -1, with_results=self._turn.with_results)) as batches:
                async for batch in batches:
                    await self.writer.write(place, batch)
                    newest = batch[-1]
            ended = await self._read_end(lane, newest)
        await self.writer.end_lane(place, ended)

    async def _read_end(self, lane: StoredResponse, newest: LoggedEvent | None) -> ResponseBody | None:
        """Return a lane's response as it ended: as it is stored, or as its last event shows it where it is not."""
        stored: StoredResponse | None = None
        if self._turn.is_stored:
            stored = await retry_while_unavailable(lambda: self._wait_for_stored_end(lane), self._pauses_seconds)
        else:
            await self._ports.background.attempt("drop_events", lambda: self._ports.events.drop(lane.id))
        if stored is not None:
            return stored.body
        is_last = newest is not None and newest.type in TERMINAL_TYPES
        return orjson.loads(newest.body)["response"] if newest is not None and is_last else None

    async def _wait_for_stored_end(self, lane: StoredResponse) -> StoredResponse | None:
        """Return a lane's response once its end is stored; None where it was deleted."""
        found = await self._ports.stored.turns.find(lane.id)
        if found is None or found.status.is_terminal:
            return found
        with suppress(NotFound):
            return await self._responses.wait_until_ended(found)
        return None


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _stop_when_taken(writer: JoinedWriter) -> None:
    await writer.taken.wait()
    raise TurnTaken("The response has ended, or another process has taken it over.")
