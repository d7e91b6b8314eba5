"""Starting a turn that several models answer: a lane for each, stored together with the response that joins them."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from backend.conversations.domain.responses import Conversation, NewTurn, StoredResponse
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.limits.services.turn_rates import TurnRates
from backend.openai_api.domain.response_object import ResponseBody
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.lanes import lane_requests, lanes_in, main_lane, read_joined_response_id
from backend.turns.domain.turn import Turn
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.lanes.joined_assembly import join_assembled
from backend.turns.services.prepare_turn import PrepareTurn
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.turn_draft import AskedTurn
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import BallastError, TurnRunning


class StartLanes:
    """Starts turns of several models; a failure before they are stored leaves nothing behind, of any of them."""

    def __init__(
        self,
        prepare: PrepareTurn,
        turns: TurnStore,
        conversations: ConversationStore,
        registry: TurnRegistry,
        admission: Admission,
        rates: TurnRates,
    ) -> None:
        self._prepare = prepare
        self._turns = turns
        self._conversations = conversations
        self._registry = registry
        self._admission = admission
        self._rates = rates

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn:
        """Store and start the lanes and the joined response, which is what the claim creates; see `StartTurn`.

        Each lane takes a place for turns; the joined response takes none. An error about a model names its place, such
        as `models[1]`.
        """
        self._admission.check()
        with ExitStack() as stack:
            holders = holders_of(caller)
            rate = stack.enter_context(await self._rates.take(caller, len(request.models or ())))
            places = [stack.enter_context(self._admission.place(*holders)) for _ in request.models or ()]
            with self._registry.preparing():
                asked = await self._prepare.requests.read(caller, request)
                *lanes, joined = await self._begin_or_branch(asked, request_id, claim)
            for lane, place in zip(lanes, places, strict=True):
                lane.at_end(place.keep())
            joined.at_end(rate.keep(lambda: joined.tokens))
        await joined.opened.wait()
        return joined

    async def _begin_or_branch(self, asked: AskedTurn, request_id: str, claim: KeyClaim | None) -> list[RunningTurn]:
        """Return the running lanes, and behind them the response that joins them."""
        before = await self._find_joined_before(asked.caller, asked.request)
        starts = await self._starts(asked, before)
        try:
            return await self._store_and_start(asked, starts, before, (request_id, claim))
        except TurnRunning:
            # As in `StartTurn`: where another turn was faster, who resends a history branches off.
            if not any(start.is_recognised for start in starts):
                raise
            starts = await self._starts(asked, before)
            return await self._store_and_start(asked, starts, before, (request_id, claim))

    async def _find_joined_before(self, caller: Caller, request: TurnRequest) -> ResponseBody | None:
        """Return the joined response whose lanes go on: the one that is named, or the newest of the conversation.

        In a conversation they go on only where nothing stands behind its own lane, which the others would lack.

        Raises:
            TurnRunning: one of the lanes still runs.
        """
        found: StoredResponse | None = None
        if request.previous_response_id is not None:
            found = await self._turns.find(request.previous_response_id)
        elif request.conversation_id is not None:
            found = await self._newest_joined(await self._conversations.find(request.conversation_id))
        if found is None or (found.tenant, found.user_id) != (caller.tenant, caller.user_id):
            return None
        if not lanes_in(found.body):
            return None
        if not found.status.is_terminal:
            raise TurnRunning("A model still answers the turn before.", param="previous_response_id")
        return found.body

    async def _newest_joined(self, conversation: Conversation | None) -> StoredResponse | None:
        if conversation is None or conversation.latest_response_id is None:
            return None
        lane = await self._turns.find(conversation.latest_response_id)
        if lane is None or lane.log_end not in (None, conversation.log_length):
            return None
        joined_id = read_joined_response_id(lane.body)
        return await self._turns.find(joined_id) if joined_id is not None else None

    async def _starts(self, asked: AskedTurn, before: ResponseBody | None) -> list[TurnStart]:
        """Return where each model begins, in their order."""
        requests = lane_requests(asked.request, before)
        starts: dict[int, TurnStart] = {}
        for place, each in enumerate(requests):
            if each.branches_off is None:
                with _naming_place(place):
                    starts[place] = await self._prepare.start(replace(asked, request=each.request))
        for place, each in enumerate(requests):
            if each.branches_off is not None:
                model = each.request.model or ""
                starts[place] = await self._prepare.branch(asked, starts[each.branches_off], model)
        main = main_lane(before) if before is not None else None
        charged_to = (main.conversation_id if main else None) or starts[0].origin.conversation.id
        # one request, one budget: each model adds to what the conversation of the main lane has searched
        return [replace(starts[place], charged_to=charged_to) for place in range(len(requests))]

    async def _store_and_start(
        self,
        asked: AskedTurn,
        starts: Sequence[TurnStart],
        before: ResponseBody | None,
        by: tuple[str, KeyClaim | None],
    ) -> list[RunningTurn]:
        request_id, claim = by
        lanes: list[tuple[Turn, NewTurn]] = []
        for place, start in enumerate(starts):
            with _naming_place(place):
                lanes.append(await self._prepare.build(asked, start, request_id))
        whole = join_assembled(self._prepare.drafting.new_response_id(asked), lanes, asked.request, before)
        with ExitStack() as stack:
            for record in whole.records:
                stack.enter_context(self._registry.owning(record.response.id))
            if whole.joined.is_stored:
                await self._turns.begin_together(whole.add_claim(claim))
            return [self._registry.start(turn) for turn in (*whole.lanes, whole.joined)]


@contextmanager
def _naming_place(place: int) -> Generator[None]:
    """Let an error about a lane's `model` name its place among the models."""
    try:
        yield
    except BallastError as error:
        if error.param == "model":
            error.name(f"models[{place}]")
        raise
