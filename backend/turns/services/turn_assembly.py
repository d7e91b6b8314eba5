"""Putting a turn together once everything is known: what is stored first, and what is sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backend.conversations.domain.compaction import TOOLS_TOKENS, Load
from backend.conversations.domain.context_policy import ContextPlan, full_context, plan_context
from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    messages_of,
    said_context,
    sent_entries,
    told_cut,
)
from backend.conversations.domain.epochs import Epoch, compact
from backend.conversations.domain.item_bodies import input_bodies, user_text_body
from backend.conversations.domain.notices import COMPACTED
from backend.conversations.domain.responses import Item, ItemBody, NewTurn, ResponseStatus, StoredResponse
from backend.conversations.domain.turn_entries import (
    TurnStamp,
    context_entry,
    current_entry,
    given_entries,
    notice_entry,
    numbered_items,
    placed,
)
from backend.conversations.domain.turn_input import TurnInput
from backend.conversations.domain.turn_settings import TurnSettings
from backend.conversations.domain.withheld import labels_in
from backend.identity.domain.identity import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Label, Labels, joined_labels
from backend.knowledge.domain.tickets import Ticket, sign_ticket
from backend.turns.domain.requested_settings import model_parameters
from backend.turns.domain.response_object import ResponseFacts, new_body
from backend.turns.domain.turn_origin import TurnOrigin
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.services.turn_ports import Turn
from backend.turns.services.turn_scope import TurnScope
from shared.ids import new_id
from shared.models.canonical import canonical_parts
from shared.models.events import ModelCard
from shared.models.execution import AccessMode, ExecutionRequest, Knowledge, TurnLimits, User
from shared.models.messages import HistoryMessage
from shared.tokens import estimate_tokens

NOTHING_SAID = ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)

FIRST_EVENTS = 2
"""`response.created` and `response.in_progress`, appended as soon as the turn's task runs."""


@dataclass(frozen=True)
class TurnPolicy:
    """What the operator sets for all turns.

    `secret` signs tickets; `replica` names this process. `keeps_context`: what is said of bases in scope and in
    dynamic blocks goes into the log, and only changes are said again; otherwise all is said in every turn.
    """

    time_zone: str
    timeout: timedelta
    max_knowledge_calls: int
    replica: str
    secret: str
    keeps_context: bool = True


@dataclass(frozen=True)
class TurnDraft:
    """A turn being prepared: its ids, its origin, what its input means and what it runs with.

    `needs_calls`: its input answers calls at the log's end.
    """

    caller: Caller
    request: TurnRequest
    request_id: str
    response_id: str
    now: datetime
    origin: TurnOrigin
    read: TurnInput
    settings: TurnSettings
    bindings: tuple[Binding, ...]
    epoch: Epoch
    card: ModelCard
    needs_calls: bool

    @property
    def log_length(self) -> int:
        """What the log measures before the turn, copies of a fork included."""
        return self.origin.log[-1].position + 1 if self.origin.log else 0


class TurnAssembly:
    """Puts turns together; asks nobody."""

    def __init__(self, policy: TurnPolicy) -> None:
        self._policy = policy

    def _fitted(self, draft: TurnDraft, scope: TurnScope, plan: ContextPlan) -> Epoch:
        """Leave out the oldest turns where the conversation has outgrown the model's window."""
        functions = canonical_parts(draft.settings.functions, ())[0].decode()
        load = Load(
            system_prompt=draft.settings.system_prompt(draft.epoch.reset.template_version),
            current=draft.read.current,
            needs_calls=draft.needs_calls,
            given=draft.read.history,
            tools_tokens=TOOLS_TOKENS + estimate_tokens(functions),
            context_tokens=estimate_tokens(plan.text),
            restated_tokens=estimate_tokens(full_context(scope.base_texts, scope.dynamic_blocks).text),
        )
        return compact(draft.epoch, draft.origin.log, load, draft.card)

    def assemble(self, draft: TurnDraft, scope: TurnScope) -> tuple[Turn, NewTurn]:
        """Make what is to run and what is to be stored before.

        Raises:
            ContextTooLong: what may not be left out does not fit.
        """
        plan = self._context(draft, scope)
        epoch = self._fitted(draft, scope, plan)
        if epoch is not draft.epoch:
            draft = replace(draft, epoch=epoch)
            plan = self._context(draft, scope)
        label = _label(draft, scope)
        entries = self._entries(draft, plan, label)
        bodies = _input_bodies(draft.request)
        response = self._response(draft, bodies, label)
        execution = self._execution_request(draft, scope, plan, _history(draft, entries))
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
            epoch_reason=draft.epoch.reset.reason,
            starts_epoch=draft.epoch.starts,
            keeps_context=plan.state is not None,
            sent=draft.origin.conversation.sent,
        )
        return turn, new_turn

    def _context(self, draft: TurnDraft, scope: TurnScope) -> ContextPlan:
        """Say what is new of this moment; nothing where no message of the user follows."""
        if draft.read.current is None:
            return NOTHING_SAID
        if not self._policy.keeps_context:
            return full_context(scope.base_texts, scope.dynamic_blocks)
        said = said_context(draft.origin.log, draft.epoch.reset)
        return plan_context(said, scope.base_texts, scope.dynamic_blocks)

    def _entries(self, draft: TurnDraft, plan: ContextPlan, label: Labels) -> tuple[Entry, ...]:
        epoch = draft.epoch
        stamp = TurnStamp(
            turn_id=draft.response_id,
            epoch=epoch.number,
            sent_at=draft.now,
            time_zone=self._policy.time_zone,
            label=label,
        )
        is_cut = epoch.reset.begins_at > told_cut(draft.origin.log)
        notices = (notice_entry(COMPACTED, stamp),) if is_cut and draft.read.current is not None else ()
        said = (*notices, *context_entry(plan, stamp), *current_entry(draft.read, stamp))
        own = (*given_entries(draft.read, stamp), *said)
        return placed(own, draft.log_length, epoch.reset if epoch.starts else None)

    def _response(self, draft: TurnDraft, bodies: Sequence[ItemBody], label: Labels) -> StoredResponse:
        conversation_id = draft.origin.conversation.id
        facts = ResponseFacts(
            id=draft.response_id,
            created_at_seconds=int(draft.now.timestamp()),
            conversation_id=conversation_id if draft.request.is_stored else None,
            model=draft.settings.model,
            instructions=draft.settings.instructions,
            functions=draft.settings.functions,
            knowledge_base_ids=draft.settings.knowledge_base_ids,
            search=draft.settings.search,
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
            label=label,
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
            "search": draft.settings.search,
            "epoch": draft.epoch.number,
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

    def _execution_request(
        self, draft: TurnDraft, scope: TurnScope, plan: ContextPlan, sent: tuple[HistoryMessage, ...]
    ) -> ExecutionRequest:
        caller, conversation = draft.caller, draft.origin.conversation
        deadline = draft.now + self._policy.timeout
        calls = min(self._policy.max_knowledge_calls, draft.request.max_tool_calls or self._policy.max_knowledge_calls)
        return ExecutionRequest(
            request_id=draft.request_id,
            conversation_id=conversation.id,
            turn_id=draft.response_id,
            epoch=draft.epoch.number,
            user=User(id=caller.user_id, tenant=caller.tenant, display_name=caller.user_id),
            model=draft.settings.model,
            parameters=model_parameters(draft.request),
            system_prompt=draft.settings.system_prompt(draft.epoch.reset.template_version),
            history=sent,
            kb_meta_prompt=plan.kb_meta_prompt,
            dynamic_blocks=plan.dynamic_blocks,
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
            search=draft.settings.search,
            expires_at=expires_at,
        )
        return Knowledge(
            bases=scope.bases, access_mode=scope.access_mode, ticket=sign_ticket(ticket, self._policy.secret)
        )


def _label(draft: TurnDraft, scope: TurnScope) -> Labels:
    """Name the bases whose words the turn may hold: its own, and those of the turns that its model is shown."""
    own = [Label(base.id, base.access_mode) for base in scope.bases]
    withheld = frozenset(draft.epoch.reset.withheld)
    return joined_labels([*own, *labels_in([entry for entry in draft.origin.log if entry.turn_id not in withheld])])


def _history(draft: TurnDraft, entries: Sequence[Entry]) -> tuple[HistoryMessage, ...]:
    """Make the messages before the context and the current message, which the request carries by themselves."""
    log = (*draft.origin.log, *entries)
    sent = sent_entries(log, draft.epoch.reset)
    if draft.read.current is None:
        return messages_of(sent)
    has_context = len(sent) > 1 and sent[-2].kind is EntryKind.DYNAMIC_CONTEXT and sent[-2].turn_id == draft.response_id
    return messages_of(sent[: -2 if has_context else -1])


def _input_bodies(request: TurnRequest) -> tuple[ItemBody, ...]:
    if isinstance(request.input, str):
        return (user_text_body(request.input, new_id),)
    return input_bodies(request.input, new_id)
