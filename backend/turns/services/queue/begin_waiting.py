"""Beginning turns that wait, once their conversations are free."""

import asyncio
from contextlib import suppress

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.admission import Admission
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_object import build_failure
from backend.turns.domain.unbegun import unbegun, with_blank_body
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import (
    BallastError,
    CorruptRecord,
    DeadlineExceeded,
    InternalError,
    TooManyRequests,
    TurnRunning,
    Unavailable,
)
from shared.models.error_reports import report_of
from shared.models.events import Usage

LOOK_SECONDS = 1.0
"""Pause between looks for waiting turns, which find what no signal has told; the end of a turn that is known to be
waited for ends it."""

BEGUN_AT_ONCE = 16


class BeginWaiting:
    """Begins waiting turns of any process; which one begins a turn, the store decides."""

    def __init__(
        self,
        ports: TurnPorts,
        start: StartTurn,
        registry: TurnRegistry,
        admission: Admission,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._look_seconds = look_seconds
        self._ports = ports
        self._start = start
        self._registry = registry
        self._admission = admission

    async def step(self) -> None:
        """Wait for the end of a turn that others wait for, or for a while, then begin what can begin.

        Raises:
            Unavailable: the database is away. The next look continues.
        """
        await self._registry.look_due_within(self._look_seconds)
        await self.look()

    async def look(self) -> None:
        """Begin some of the turns whose conversations are free, and stop those that others want stopped.

        Raises:
            Unavailable: the database is away.
        """
        if not self._admission.accepting or not self._admission.has_event_store:
            return
        for response_id in await self._ports.stored.waiting.to_be_cancelled():
            with suppress(Unavailable):
                await self._ports.signals.send(response_id)
        self._registry.ask_to_pause(await self._ports.stored.waiting.to_be_steered())
        ids = await self._ports.stored.waiting.startable(BEGUN_AT_ONCE)
        self._registry.has_startable = bool(ids)
        async with asyncio.TaskGroup() as group:
            for response_id in ids:
                group.create_task(self._begin(response_id))

    async def _begin(self, response_id: str) -> None:
        """Begin a turn; where that cannot be it waits on, or ends where it never can."""
        outcome = await result_or_error(self._try_to_begin(response_id))
        if not isinstance(outcome, BaseException) or _may_be_later(outcome):
            return
        error = outcome if isinstance(outcome, BallastError) else InternalError("The turn could not be begun.")
        if error is not outcome:
            self._ports.observer.turn_broke(response_id, outcome)
        await self._ports.background.attempt("waiting_turns", lambda: self._end(response_id, error))

    async def _try_to_begin(self, response_id: str) -> None:
        waiting = await self._ports.stored.waiting.find(response_id)
        if waiting is None:
            return
        if self._ports.clock.now() >= waiting.expires_at:
            raise DeadlineExceeded("The turn waited too long for the turns before it.")
        await self._start.begin(waiting)

    async def _end(self, response_id: str, error: BallastError) -> None:
        response = await self._response(response_id)
        if response is not None:
            ending = build_failure(report_of(error), Usage())
            await self._ports.stored.waiting.withdraw(unbegun(response, ending, self._ports.clock.now()))

    async def _response(self, response_id: str) -> StoredResponse | None:
        """Return the response of a turn that waits; one that cannot be read must not keep those behind it waiting."""
        try:
            waiting = await self._ports.stored.waiting.find(response_id)
        except CorruptRecord:
            remains = await self._ports.stored.waiting.remains(response_id)
            return with_blank_body(remains) if remains is not None else None
        return waiting.response if waiting is not None else None


def _may_be_later(error: BaseException) -> bool:
    """Say whether a turn may begin at a later look: another one came first, or something is away."""
    return isinstance(error, TurnRunning | TooManyRequests | Unavailable)
