"""Starting a turn: everything is resolved, checked and stored before anything is sent."""

from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.queue_turn import AcknowledgedTurn, QueueTurn, asked_of
from backend.turns.services.start_lanes import StartLanes
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

    def __init__(
        self, ports: TurnPorts, drafting: TurnDrafting, queue: QueueTurn, admission: Admission, registry: TurnRegistry
    ) -> None:
        self._queue = queue
        self._turns = ports.turns
        self._drafting = drafting
        self._admission = admission
        self._registry = registry
        self._rates = ports.rates
        self._lanes = StartLanes(ports, drafting, admission, registry)

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None = None
    ) -> RunningTurn | AcknowledgedTurn:
        """Store a turn and start it, or let it wait where it asks for that; what a claim has created is the response.

        Several models are started in lanes.

        Raises:
            Draining: this process is shutting down.
            InvalidRequest: the input is not valid; `param` names the place.
            KeyHeld: another request has used the key of the claim.
            NotFound: the conversation, response, model or base does not exist for this caller.
            TurnRunning: a turn holds the conversation, and the request does not say that this one waits.
            TooManyRequests: the caller has as many turns running as one may, a limit of the key or tenant is reached,
                or too many turns wait. Retryable later.
            Unavailable: a service that the turn depends on is unavailable, or too many turns run. Where it is the
                database that did not answer in time, the turn may be stored nevertheless; it is then taken over.
        """
        if request.models is not None:
            return await self._lanes(caller, request, request_id, claim)
        self._admission.check()
        with await self._rates.take(caller) as rate, self._admission.place(*holders_of(caller)) as place:
            with self._registry.preparing():
                begun = await self._begun_or_queued(caller, request, request_id, claim)
            if isinstance(begun, AcknowledgedTurn):
                return begun
            begun.at_end(place.keep())
            rate.hand_to(begun)
        await begun.opened.wait()
        return begun

    async def begin(self, waiting: WaitingTurn) -> None:
        """Start a turn that waits, with the rights that its caller has today; it runs on by itself.

        Raises:
            TurnRunning: a turn holds the conversation, or another one comes next.
            BallastError: as of a turn that is started at once.
        """
        later = asked_of(waiting)
        caller = later.caller
        with await self._rates.take_again(caller) as rate, self._admission.place(*holders_of(caller)) as place:
            with self._registry.preparing():
                asked = await self._drafting.asked_again(later, waiting.response)
                start = await self._drafting.start(asked)
                running = await self._stored_and_started(asked, start, later.request_id, None)
            running.waited_for.set()  # those behind it told the turn before it
            running.at_end(place.keep())
            rate.hand_to(running)

    async def _begun_or_queued(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn | AcknowledgedTurn:
        try:
            return await self._begun(caller, request, request_id, claim)
        except TurnRunning:
            if request.if_running is None:
                raise
        acknowledged = await self._queue(caller, request, request_id, claim)
        self._registry.ask_for_look()  # the running turn may have ended before it was told
        return acknowledged

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
        turn, new_turn = await run_in_thread_if_large(start.size, lambda: assembled(draft))
        with self._registry.owning(turn.response.id):
            if turn.is_stored:
                claimed = claim.of(turn.response.id) if claim is not None else None
                await self._turns.begin(new_turn.model_copy(update={"claim": claimed}))
            return self._registry.start(turn)
