"""Starting a turn: everything is resolved, checked and stored before anything is sent."""

from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.foundation.services.steps import beside_others
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.services.turn_assembly import assembled
from backend.turns.services.turn_drafting import AskedTurn, TurnDrafting
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import RunningTurn, TurnRegistry
from shared.errors import TurnRunning


class StartTurn:
    """Starts turns. A failure before `TurnStore.begin` leaves nothing behind.

    A `begin` whose answer is lost may leave a turn that nobody runs. Until its end is known the registry owns the turn;
    afterwards whoever looks for such turns (`Recovery.take`) takes it over.
    """

    def __init__(self, ports: TurnPorts, drafting: TurnDrafting, admission: Admission, registry: TurnRegistry) -> None:
        self._turns = ports.turns
        self._drafting = drafting
        self._admission = admission
        self._registry = registry

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None = None
    ) -> RunningTurn:
        """Store a turn and start it; what a claim has created is the response.

        Raises:
            Draining: this process is shutting down.
            InvalidRequest: the input is not valid; `param` names the place.
            KeyHeld: another request has used the key of the claim.
            NotFound: the conversation, response, model or base does not exist for this caller.
            TurnRunning: a turn holds the conversation. Retryable later.
            TooManyRequests: the caller has as many turns running as one may. Retryable later.
            Unavailable: a service that the turn depends on is unavailable, or too many turns run. Where it is the
                database that did not answer in time, the turn may be stored nevertheless; it is then taken over.
        """
        self._admission.check()
        with self._admission.place(*holders_of(caller)) as place:
            with self._registry.preparing():
                running = await self._begun(caller, request, request_id, claim)
            running.at_end(place.keep())
        await running.opened.wait()
        return running

    async def _begun(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn:
        asked = await self._drafting.asked(caller, request)
        start = await self._drafting.start(asked)
        try:
            return await self._stored_and_started(asked, start, request_id, claim)
        except TurnRunning:
            # Who resends a history names no conversation: where another turn was faster, this one branches off.
            if not start.is_recognised:
                raise
            start = await self._drafting.start(asked)
            return await self._stored_and_started(asked, start, request_id, claim)

    async def _stored_and_started(
        self, asked: AskedTurn, start: TurnStart, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn:
        draft = await self._drafting.draft(asked, start, request_id)
        turn, new_turn = await beside_others(start.size, lambda: assembled(draft))
        with self._registry.owning(turn.response.id):
            if turn.is_stored:
                claimed = claim.of(turn.response.id) if claim is not None else None
                await self._turns.begin(new_turn.model_copy(update={"claim": claimed}))
            return self._registry.start(turn)
