"""Letting a turn wait for the conversation that another turn holds."""

from contextlib import suppress
from datetime import timedelta

from backend.conversations.domain.responses import Conversation, StoredResponse
from backend.conversations.domain.waiting_turns import MOST_WAITING, IfRunning, WaitingTurn
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import encode_labels
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.lanes import lane_to_continue
from backend.turns.domain.queued_request import (
    AcknowledgedTurn,
    QueuedRequest,
    name_queued_signal,
    name_steer_signal,
    request_json,
    write_queued,
)
from backend.turns.services.prepare_turn import PrepareTurn
from backend.turns.services.turn_draft import AskedTurn
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import NotFound, Unavailable
from shared.models.messages import UserMessage


class QueueTurn:
    """Stores turns that wait; `timeout` is the longest time that a turn may take."""

    def __init__(self, ports: TurnPorts, prepare: PrepareTurn, timeout: timedelta) -> None:
        self._ports = ports
        self._stored = ports.stored
        self._prepare = prepare
        self._timeout = timeout

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> AcknowledgedTurn:
        """Store a turn that begins once its conversation is free, or whose message enters the turn that runs.

        Raises:
            InvalidRequest: the input is not valid, or answers calls that the running turn may still make.
            KeyHeld: another request has used the key of the claim.
            NotFound: the conversation, the model or a base does not exist for this caller.
            TooManyRequests: too many turns wait for the conversation. Retryable later.
            Unavailable: a service that the turn depends on is unavailable. Retryable.
        """
        how = IfRunning(request.if_running or IfRunning.QUEUE)
        conversation = await self._conversation(caller, request)
        requests = self._prepare.requests
        resolved = await requests.resolved(caller, request)
        draft = await self._prepare.drafting.draft_queued(await requests.take_out_files(resolved), conversation)
        response = draft.response
        waiting = WaitingTurn(
            response=response,
            if_running=how,
            asked=await _write_asked(resolved, request_id, draft.messages),
            expires_at=self._ports.clock.now() + (MOST_WAITING + 1) * self._timeout,
            claim=claim.of(response.id) if claim is not None else None,
        )
        holder_id = await self._stored.waiting.add(waiting, MOST_WAITING)
        self._ports.observer.turn_queued(response, how)
        steered = await self._tell_holder(caller, how, holder_id) if holder_id is not None else None
        return AcknowledgedTurn(response, steered)

    async def _tell_holder(self, caller: Caller, how: IfRunning, holder_id: str) -> StoredResponse | None:
        """Tell the process of the running turn; where that fails, the next look for waiting turns finds it."""
        with suppress(Unavailable):
            await self._ports.signals.send(name_queued_signal(holder_id))
            if how is IfRunning.CANCEL:
                await self._ports.signals.send(holder_id)
        holder = await self._stored.turns.find(holder_id) if how is IfRunning.STEER else None
        if holder is None or holder.user_id != caller.user_id or await self._stored.withheld.concerns(caller, holder):
            return None
        with suppress(Unavailable):
            await self._ports.signals.send(
                name_steer_signal(holder_id, len(await self._stored.waiting.find_entered(holder_id)))
            )
        return holder

    async def _conversation(self, caller: Caller, request: TurnRequest) -> Conversation:
        """Return the conversation that the request continues; whoever calls has found that the caller may use it.

        Behind a joined response it is that of a lane: the one that the joined response holds itself has no log.
        """
        conversation_id, param = request.conversation_id, "conversation"
        if conversation_id is None:
            previous = await self._stored.turns.find(request.previous_response_id or "")
            if previous is not None:
                # The lanes that branch off are conversations of who asked for them.
                model = request.model if previous.user_id == caller.user_id else None
                lane = lane_to_continue(previous.body, model)
                previous = previous if lane is None else await self._stored.turns.find(lane.response_id)
            conversation_id, param = previous.conversation_id if previous is not None else "", "previous_response_id"
        found = await self._stored.conversations.find(conversation_id)
        if found is None:
            raise NotFound("There is no such conversation any more.", param=param)
        return found


async def _write_asked(resolved: AskedTurn, request_id: str, messages: tuple[UserMessage, ...]) -> str:
    request = resolved.request
    count = 1 if isinstance(request.input, str) else len(request.input)
    labels = {item_id: encoded for item_id, each in resolved.labels.items() if (encoded := encode_labels(each))}
    later = QueuedRequest(
        caller=resolved.caller,
        request_id=request_id,
        request=await run_in_thread_if_large(count, lambda: request_json(request)),
        labels=labels,
        messages=messages,
    )
    return write_queued(later)
