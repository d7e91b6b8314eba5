"""Putting a turn together once everything is known: what is stored first, and what is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.domain.conversation_log import Entry, history
from backend.domain.identity import Caller
from backend.domain.item_bodies import input_bodies, user_text_body
from backend.domain.response_object import ResponseFacts, new_body
from backend.domain.responses import Item, ItemBody, NewTurn, ResponseStatus, StoredResponse
from backend.domain.tickets import Ticket, sign_ticket
from backend.domain.turn_entries import TurnStamp, current_entry, given_entries, numbered_items
from backend.domain.turn_input import TurnInput
from backend.domain.turn_origin import TurnOrigin
from backend.domain.turn_request import TurnRequest
from backend.domain.turn_settings import TurnSettings, model_parameters
from backend.services.turn_ports import Turn
from backend.services.turn_scope import TurnScope
from shared.ids import new_id
from shared.models.execution import AccessMode, ExecutionRequest, Knowledge, TurnLimits, User

FIRST_EVENTS = 2
"""`response.created` and `response.in_progress`, appended as soon as the turn's task runs."""


@dataclass(frozen=True)
class TurnPolicy:
    """What the operator sets for all turns.

    `secret` signs tickets; `replica` names this process.
    """

    time_zone: str
    timeout: timedelta
    max_knowledge_calls: int
    replica: str
    secret: str


@dataclass(frozen=True)
class TurnDraft:
    """A turn being prepared: its ids, its origin, what its input means and what it runs with.

    `epoch_reason` is None where the epoch goes on; `inherited_label` is that of the turns which the model is shown.
    """

    caller: Caller
    request: TurnRequest
    request_id: str
    response_id: str
    now: datetime
    origin: TurnOrigin
    read: TurnInput
    settings: TurnSettings
    epoch: int
    epoch_reason: str | None
    inherited_label: frozenset[str]

    @property
    def log_length(self) -> int:
        """What the log measures before the turn, copies of a fork included."""
        return self.origin.log[-1].position + 1 if self.origin.log else 0


class TurnAssembly:
    """Puts turns together; asks nobody."""

    def __init__(self, policy: TurnPolicy) -> None:
        self._policy = policy

    def assemble(self, draft: TurnDraft, scope: TurnScope) -> tuple[Turn, NewTurn]:
        """Make what is to run and what is to be stored before."""
        stamp = TurnStamp(
            turn_id=draft.response_id,
            epoch=draft.epoch,
            sent_at=draft.now,
            time_zone=self._policy.time_zone,
            label=_label(draft, scope),
        )
        given = given_entries(draft.read, draft.log_length, stamp)
        entries = (*given, *current_entry(draft.read, draft.log_length + len(given), stamp))
        bodies = _input_bodies(draft.request)
        response = self._response(draft, bodies)
        execution = self._execution_request(draft, scope, (*draft.origin.log, *given))
        new_turn = self._new_turn(
            draft, response, entries, numbered_items(bodies, draft.origin.next_sequence, response.id)
        )
        turn = Turn(
            request=execution,
            response=response,
            log_length=draft.log_length + len(entries),
            next_sequence=draft.origin.next_sequence + len(bodies),
            is_stored=draft.request.is_stored,
            with_results=draft.request.wants_results and execution.knowledge.access_mode is AccessMode.FULL,
            received_at=draft.now,
            epoch_reason=draft.epoch_reason,
        )
        return turn, new_turn

    def _response(self, draft: TurnDraft, bodies: Sequence[ItemBody]) -> StoredResponse:
        conversation_id = draft.origin.conversation.id
        facts = ResponseFacts(
            id=draft.response_id,
            created_at_seconds=int(draft.now.timestamp()),
            conversation_id=conversation_id if draft.request.is_stored else None,
            model=draft.settings.model,
            instructions=draft.settings.instructions,
            functions=draft.settings.functions,
            knowledge_base_ids=draft.settings.knowledge_base_ids,
        )
        return StoredResponse(
            id=draft.response_id,
            tenant=draft.caller.tenant,
            user_id=draft.caller.user_id,
            conversation_id=conversation_id,
            created_at=draft.now,
            status=ResponseStatus.IN_PROGRESS,
            background=draft.request.is_background,
            body=new_body(draft.request, facts),
            input_items=tuple(bodies),
            log_end=None,
            items_end=None,
            last_event=FIRST_EVENTS - 1,
            replica=self._policy.replica,
        )

    def _new_turn(
        self, draft: TurnDraft, response: StoredResponse, entries: Sequence[Entry], items: Sequence[Item]
    ) -> NewTurn:
        origin = draft.origin
        copied = origin.log if origin.is_new else ()
        before = origin.conversation
        changes = {
            **draft.settings.model_dump(include={"model", "instructions", "knowledge_base_ids"}),
            "functions": draft.settings.functions,
            "epoch": draft.epoch,
            "log_length": draft.log_length + len(entries),
            "running_response_id": response.id,
            "latest_response_id": response.id,
        }
        return NewTurn(
            conversation=before.model_copy(update=changes),
            expected_log_length=None if origin.is_new else before.log_length,
            response=response,
            entries=(*copied, *entries),
            items=(*origin.items, *items),
        )

    def _execution_request(self, draft: TurnDraft, scope: TurnScope, log: Sequence[Entry]) -> ExecutionRequest:
        caller, conversation = draft.caller, draft.origin.conversation
        deadline = draft.now + self._policy.timeout
        continues = draft.read.current is None
        calls = min(self._policy.max_knowledge_calls, draft.request.max_tool_calls or self._policy.max_knowledge_calls)
        return ExecutionRequest(
            request_id=draft.request_id,
            conversation_id=conversation.id,
            turn_id=draft.response_id,
            epoch=draft.epoch,
            user=User(id=caller.user_id, tenant=caller.tenant, display_name=caller.user_id),
            model=draft.settings.model,
            parameters=model_parameters(draft.request),
            system_prompt=draft.settings.system_prompt,
            history=history(log),
            kb_meta_prompt="" if continues else scope.kb_meta_prompt,
            dynamic_blocks=() if continues else scope.dynamic_blocks,
            prompt=draft.read.current,
            sent_at=draft.now,
            time_zone=self._policy.time_zone,
            knowledge=self._knowledge(draft, scope, deadline),
            tools=draft.settings.functions,
            limits=TurnLimits(max_knowledge_calls=calls, max_model_calls=None),
            cache_key=conversation.cache_key,
            deadline=deadline,
        )

    def _knowledge(self, draft: TurnDraft, scope: TurnScope, expires_at: datetime) -> Knowledge:
        ticket = Ticket(
            user_id=draft.caller.user_id,
            tenant=draft.caller.tenant,
            conversation_id=draft.origin.conversation.id,
            turn_id=draft.response_id,
            base_ids=tuple(base.id for base in scope.bases),
            max_results=draft.request.max_results,
            expires_at=expires_at,
        )
        return Knowledge(
            bases=scope.bases, access_mode=scope.access_mode, ticket=sign_ticket(ticket, self._policy.secret)
        )


def _label(draft: TurnDraft, scope: TurnScope) -> tuple[str, ...]:
    own = {base.id for base in scope.bases} if scope.access_mode is AccessMode.FULL else set[str]()
    return tuple(sorted(draft.inherited_label | own))


def _input_bodies(request: TurnRequest) -> tuple[ItemBody, ...]:
    if isinstance(request.input, str):
        return (user_text_body(request.input, new_id),)
    return input_bodies(request.input, new_id)
