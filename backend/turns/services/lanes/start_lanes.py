"""Starting a turn that several models answer: a lane for each, stored together with the response that joins them."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from backend.conversations.domain.responses import Conversation, NewTurn, StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.openai_api.domain.response_object import ResponseBody
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.lanes import joined_response_id, lane_requests, lanes_in, main_lane
from backend.turns.domain.turn import Turn
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.lanes.joined_assembly import join_assembled
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.turn_assembly import assembled
from backend.turns.services.turn_drafting import AskedTurn, TurnDrafting
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import BallastError, TurnRunning


class _Begun(NamedTuple):
    """The running lanes, and the response that joins them."""

    lanes: tuple[RunningTurn, ...]
    joined: RunningTurn


class StartLanes:
    """Starts turns of several models; a failure before they are stored leaves nothing behind, of any of them."""

    def __init__(self, ports: TurnPorts, drafting: TurnDrafting, admission: Admission, registry: TurnRegistry) -> None:
        self._turns = ports.turns
        self._conversations = ports.conversations
        self._drafting = drafting
        self._admission = admission
        self._registry = registry
        self._rates = ports.rates

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
                asked = await self._drafting.asked(caller, request)
                begun = await self._begun(asked, request_id, claim)
            for lane, place in zip(begun.lanes, places, strict=True):
                lane.at_end(place.keep())
            begun.joined.at_end(rate.keep(lambda: begun.joined.tokens))
        await begun.joined.opened.wait()
        return begun.joined

    async def _begun(self, asked: AskedTurn, request_id: str, claim: KeyClaim | None) -> _Begun:
        before = await self._joined_before(asked.caller, asked.resolved.request)
        starts = await self._starts(asked, before)
        try:
            return await self._stored_and_started(asked, starts, before, (request_id, claim))
        except TurnRunning:
            # As in `StartTurn`: where another turn was faster, who resends a history branches off.
            if not any(start.is_recognised for start in starts):
                raise
            starts = await self._starts(asked, before)
            return await self._stored_and_started(asked, starts, before, (request_id, claim))

    async def _joined_before(self, caller: Caller, request: TurnRequest) -> ResponseBody | None:
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
        joined_id = joined_response_id(lane.body)
        return await self._turns.find(joined_id) if joined_id is not None else None

    async def _starts(self, asked: AskedTurn, before: ResponseBody | None) -> list[TurnStart]:
        """Return where each model begins, in their order."""
        requests = lane_requests(asked.resolved.request, before)
        starts: dict[int, TurnStart] = {}
        for place, each in enumerate(requests):
            if each.branches_off is None:
                resolved = replace(asked.resolved, request=each.request)
                with _naming_place(place):
                    starts[place] = await self._drafting.start(replace(asked, resolved=resolved))
        for place, each in enumerate(requests):
            if each.branches_off is not None:
                model = each.request.model or ""
                starts[place] = await self._drafting.branch(asked, starts[each.branches_off], model)
        main = main_lane(before) if before is not None else None
        charged_to = (main.conversation_id if main else None) or starts[0].origin.conversation.id
        # one request, one budget: each model adds to what the conversation of the main lane has searched
        return [replace(starts[place], charged_to=charged_to) for place in range(len(requests))]

    async def _stored_and_started(
        self,
        asked: AskedTurn,
        starts: Sequence[TurnStart],
        before: ResponseBody | None,
        by: tuple[str, KeyClaim | None],
    ) -> _Begun:
        request_id, claim = by
        lanes: list[tuple[Turn, NewTurn]] = []
        for place, start in enumerate(starts):
            with _naming_place(place):
                draft = await self._drafting.draft(asked, start, request_id)
                lanes.append(await run_in_thread_if_large(start.size, partial(assembled, draft)))
        whole = join_assembled(self._drafting.new_response_id(asked), lanes, asked.resolved.request, before)
        with ExitStack() as stack:
            for record in whole.records:
                stack.enter_context(self._registry.owning(record.response.id))
            if whole.joined.is_stored:
                await self._turns.begin_together(whole.claimed(claim))
            running = tuple(self._registry.start(turn) for turn in whole.lanes)
            return _Begun(running, self._registry.start(whole.joined))


@contextmanager
def _naming_place(place: int) -> Generator[None]:
    """Let an error about a lane's `model` name its place among the models."""
    try:
        yield
    except BallastError as error:
        if error.param == "model":
            error.name(f"models[{place}]")
        raise
