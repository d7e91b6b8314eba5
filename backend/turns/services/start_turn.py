"""Starting a turn: everything is resolved, checked and stored before anything is sent."""

from collections.abc import Awaitable, Callable

from backend.conversations.domain.responses import NewTurn
from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.limits.services.turn_rates import TurnRates
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.queued_request import AcknowledgedTurn, read_waiting
from backend.turns.domain.turn import StartableTurn
from backend.turns.ports.preparation import TurnPreparation
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import TurnRunning


class StartTurn:
    """Starts turns. `store` is `TurnStore.begin`; a failure before it leaves nothing behind.

    `queue` lets a turn wait whose conversation is held.

    A `store` whose answer is lost may leave a turn that nobody runs. Until its end is known the registry owns the turn;
    afterwards whoever looks for such turns (`Recovery.take`) takes it over.
    """

    def __init__(
        self,
        prepare: TurnPreparation,
        store: Callable[[NewTurn], Awaitable[None]],
        registry: TurnRegistry,
        admission: Admission,
        rates: TurnRates,
        queue: Callable[[Caller, TurnRequest, str, KeyClaim | None], Awaitable[AcknowledgedTurn]],
    ) -> None:
        self._prepare = prepare
        self._store = store
        self._registry = registry
        self._admission = admission
        self._rates = rates
        self._queue = queue

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None = None
    ) -> RunningTurn | AcknowledgedTurn:
        """Store a turn and start it, or let it wait where it asks for that; what a claim has created is the response.

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
        self._admission.check()
        with await self._rates.take(caller) as rate, self._admission.place(*holders_of(caller)) as place:
            with self._registry.preparing():
                begun = await self._begin_or_queue(caller, request, request_id, claim)
            if isinstance(begun, AcknowledgedTurn):
                return begun
            begun.at_end(place.keep())
            begun.at_end(rate.keep(lambda: begun.tokens))
        await begun.opened.wait()
        return begun

    async def begin(self, waiting: WaitingTurn) -> None:
        """Start a turn that waits, with the rights that its caller has today; it runs on by itself.

        Raises:
            TurnRunning: a turn holds the conversation, or another one comes next.
            BallastError: as of a turn that is started at once.
        """
        later = read_waiting(waiting)
        caller = later.caller
        with await self._rates.take_again(caller) as rate, self._admission.place(*holders_of(caller)) as place:
            with self._registry.preparing():
                prepared = await self._prepare.again(later, waiting.response)
                running = await self._store_and_start(prepared, None)
            running.waited_for.set()  # those behind it told the turn before it
            running.at_end(place.keep())
            running.at_end(rate.keep(lambda: running.tokens))

    async def _begin_or_queue(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn | AcknowledgedTurn:
        try:
            return await self._begin_or_branch(caller, request, request_id, claim)
        except TurnRunning:
            if request.if_running is None:
                raise
        acknowledged = await self._queue(caller, request, request_id, claim)
        self._registry.ask_for_look()  # the running turn may have ended before it was told
        return acknowledged

    async def _begin_or_branch(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn:
        prepared = await self._prepare(caller, request, request_id)
        try:
            return await self._store_and_start(prepared, claim)
        except TurnRunning:
            if prepared.branch is None:
                raise
        return await self._store_and_start(await prepared.branch(), claim)

    async def _store_and_start(self, prepared: StartableTurn, claim: KeyClaim | None) -> RunningTurn:
        turn = prepared.turn
        with self._registry.owning(turn.response.id):
            if turn.is_stored:
                rows = prepared.rows
                if claim is not None:
                    rows = rows._replace(claim=claim.of(turn.response.id))
                await self._store(rows)
            return self._registry.start(turn)
