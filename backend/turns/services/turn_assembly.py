"""Building what is stored before a turn runs, and what is sent, once everything about the turn is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backend.conversations.domain.attached_files import check_read
from backend.conversations.domain.compaction import TOOLS_TOKENS, Load
from backend.conversations.domain.context_policy import BaseText, ContextPlan, full_context, plan_context
from backend.conversations.domain.conversation_log import (
    COMPACTED,
    Entry,
    EpochReason,
    announced_cut,
    messages_of,
    sent_entries,
    stated_context,
    user_words,
)
from backend.conversations.domain.epochs import Epoch, compact
from backend.conversations.domain.item_bodies import input_bodies, user_text_body
from backend.conversations.domain.responses import (
    ConversationSettings,
    Item,
    ItemBody,
    NewTurn,
    PresetUse,
    ResponseStatus,
    StoredResponse,
)
from backend.conversations.domain.seen_chain import Chain
from backend.conversations.domain.settings_digest import settings_digest
from backend.conversations.domain.turn_entries import (
    EntryStamp,
    context_entry,
    current_entry,
    given_entries,
    notice_entry,
    numbered_items,
    placed,
)
from backend.conversations.domain.turn_input import ParsedInput
from backend.conversations.domain.withheld import labels_in
from backend.identity.domain import Caller
from backend.knowledge.domain.access import strictest_mode
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Label, Labels, joined_labels
from backend.knowledge.domain.tickets import Ticket, sign_ticket
from backend.turns.domain.presets import ModelMeaning
from backend.turns.domain.requested_settings import model_parameters
from backend.turns.domain.response_object import new_body
from backend.turns.domain.turn_origin import Origin
from backend.turns.domain.turn_plan import plan_of
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.services.turn_ports import Turn
from shared.ids import new_id
from shared.models.canonical import canonical_parts
from shared.models.execution import (
    AccessMode,
    DynamicBlock,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    TurnLimits,
    User,
)
from shared.models.messages import HistoryMessage, ToolMessage, UserMessage
from shared.tokens import estimate_tokens

NO_CONTEXT = ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)

FIRST_EVENTS = 2
"""`response.created` and `response.in_progress`, appended as soon as the turn's task runs."""


@dataclass(frozen=True)
class TurnPolicy:
    """The operator's settings for all turns.

    `secret` signs tickets; `replica` names this process. With `keeps_context` the context about bases
    and dynamic blocks is logged, and only changes are sent again; otherwise all of it is sent in every turn. `drain` is
    how long turns may run on while this process shuts down, None for their whole time.
    """

    time_zone: str
    timeout: timedelta
    max_knowledge_calls: int
    replica: str
    secret: str
    keeps_context: bool = True
    drain: timedelta | None = None


@dataclass(frozen=True)
class TurnDraft:
    """A turn being prepared: its ids, its origin, what its input means and what it runs with.

    `needs_calls`: its input answers calls at the log's end. `seen` is what the client has seen with its input, where
    that is known. `meaning` is what its model was named by; where that is a preset, `preset_use` holds its use. `given`
    labels the stored items that the input names. `base_texts` and `dynamic_blocks` are the context about the bases in
    scope and this turn that the model may get.
    """

    policy: TurnPolicy

    caller: Caller
    request: TurnRequest
    request_id: str
    response_id: str
    now: datetime
    origin: Origin
    read: ParsedInput
    settings: ConversationSettings
    bindings: tuple[Binding, ...]
    base_texts: tuple[BaseText, ...]
    dynamic_blocks: tuple[DynamicBlock, ...]
    epoch: Epoch
    meaning: ModelMeaning
    needs_calls: bool
    seen: Chain | None
    given: Labels = ()
    preset_use: PresetUse | None = None

    def __post_init__(self) -> None:
        """Check that all files of the input have been read.

        Raises:
            ValueError: one has not.
        """
        check_read(message.content for message in self.read.messages if isinstance(message, UserMessage | ToolMessage))

    @property
    def log_length(self) -> int:
        """The length of the log before the turn, including the entries that a fork copies."""
        return self.origin.log[-1].position + 1 if self.origin.log else 0


def assembled(draft: TurnDraft) -> tuple[Turn, NewTurn]:
    """Build the turn to run, and the record to store before it runs.

    Raises:
        ContextTooLong: the parts of the prompt that must not be left out do not fit.
    """
    plan = _context(draft)
    epoch = _fitted(draft, plan)
    if epoch is not draft.epoch:
        draft = replace(draft, epoch=epoch)
        plan = _context(draft)
    label = _label(draft)
    history_entries, carried_entries = _entries(draft, plan, label)
    entries = (*history_entries, *carried_entries)
    bodies = _input_bodies(draft.request)
    response = _response(draft, bodies, label)
    execution = _execution_request(draft, plan, history_entries, carried_entries)
    new_turn = _new_turn(draft, response, entries, numbered_items(bodies, draft.origin.next_sequence, response.id))
    with_results = draft.request.wants_results and execution.knowledge.access_mode is AccessMode.FULL
    log_ends = (draft.log_length + len(history_entries), draft.log_length + len(entries))
    own_plan = plan_of(execution, log_ends, keeps_context=plan.state is not None, with_results=with_results)
    turn = Turn(
        request=execution,
        response=response,
        log_length=draft.log_length + len(entries),
        next_sequence=draft.origin.next_sequence + len(bodies),
        is_stored=draft.request.is_stored,
        with_results=with_results,
        received_at=draft.now,
        epoch_reason=draft.epoch.reset.reason,
        starts_epoch=draft.epoch.starts or _is_first_after_edit(draft),
        keeps_context=plan.state is not None,
        sent=draft.origin.conversation.sent,
        seen=draft.seen,
    )
    return turn, new_turn.model_copy(update={"plan": own_plan.model_dump_json(exclude_defaults=True)})


def _is_first_after_edit(draft: TurnDraft) -> bool:
    """Return whether an item was taken out since the newest model call: no turn has told of that epoch yet."""
    sent, epoch = draft.origin.conversation.sent, draft.epoch
    return epoch.reset.reason is EpochReason.HISTORY_EDITED and sent is not None and sent.epoch != epoch.number


def _fitted(draft: TurnDraft, plan: ContextPlan) -> Epoch:
    """Return the epoch, compacted where the conversation has outgrown the model's context window."""
    functions = canonical_parts(draft.settings.functions, ())[0].decode()
    load = Load(
        system_prompt=draft.settings.system_prompt(draft.epoch.reset.template_version),
        current=draft.read.current,
        needs_calls=draft.needs_calls,
        given=draft.read.history,
        tools_tokens=TOOLS_TOKENS + estimate_tokens(functions),
        context_tokens=estimate_tokens(plan.text),
        restated_tokens=estimate_tokens(full_context(draft.base_texts, draft.dynamic_blocks).text),
    )
    return compact(draft.epoch, draft.origin.log, load, draft.meaning.card)


def _context(draft: TurnDraft) -> ContextPlan:
    """Plan the dynamic context of the turn; it is empty where no message of the user follows."""
    if draft.read.current is None:
        return NO_CONTEXT
    if not draft.policy.keeps_context:
        return full_context(draft.base_texts, draft.dynamic_blocks)
    said = stated_context(draft.origin.log, draft.epoch.reset)
    return plan_context(said, draft.base_texts, draft.dynamic_blocks)


def _entries(draft: TurnDraft, plan: ContextPlan, label: Labels) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the turn's entries that the request sends as history, and those behind that it carries by themselves."""
    epoch = draft.epoch
    stamp = EntryStamp(
        turn_id=draft.response_id,
        epoch=epoch.number,
        sent_at=draft.now,
        time_zone=draft.policy.time_zone,
        label=label,
    )
    is_cut = epoch.reset.begins_at > announced_cut(draft.origin.log)
    notices = (notice_entry(COMPACTED, stamp),) if is_cut and draft.read.current is not None else ()
    before = (*given_entries(draft.read, stamp), *notices)
    carried = (*context_entry(plan, stamp), *current_entry(draft.read, stamp))
    own = placed((*before, *carried), draft.log_length, epoch.reset if epoch.starts else None)
    return own[: len(before)], own[len(before) :]


def _response(draft: TurnDraft, bodies: Sequence[ItemBody], label: Labels) -> StoredResponse:
    conversation_id = draft.origin.conversation.id
    body = new_body(draft.request, draft.settings, draft.response_id, conversation_id, draft.now)
    return StoredResponse(
        id=draft.response_id,
        tenant=draft.caller.tenant,
        user_id=draft.caller.user_id,
        conversation_id=conversation_id,
        created_at=draft.now,
        status=ResponseStatus.IN_PROGRESS,
        background=draft.request.is_background,
        body={**body, "model": draft.meaning.name},
        input_items=tuple(bodies),
        log_end=None,
        items_end=None,
        last_event=FIRST_EVENTS - 1,
        replica=draft.policy.replica,
        label=label,
        preset_use=draft.preset_use,
        ran_with=settings_digest(draft.settings) if draft.seen is not None else None,
    )


def _new_turn(draft: TurnDraft, response: StoredResponse, entries: Sequence[Entry], items: Sequence[Item]) -> NewTurn:
    origin = draft.origin
    copied = origin.log if origin.is_new else ()
    before = origin.conversation
    changes = {
        **draft.settings.model_dump(include={"model", "instructions", "knowledge_base_ids"}),
        "functions": draft.settings.functions,
        "search": draft.settings.search,
        "preset_use": draft.preset_use,
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
    draft: TurnDraft, plan: ContextPlan, history_entries: Sequence[Entry], carried_entries: Sequence[Entry]
) -> ExecutionRequest:
    caller, conversation = draft.caller, draft.origin.conversation
    deadline = draft.now + draft.policy.timeout
    calls = min(draft.policy.max_knowledge_calls, draft.request.max_tool_calls or draft.policy.max_knowledge_calls)
    return ExecutionRequest(
        request_id=draft.request_id,
        conversation_id=conversation.id,
        turn_id=draft.response_id,
        epoch=draft.epoch.number,
        user=User(id=caller.user_id, tenant=caller.tenant, display_name=caller.user_id),
        model=draft.settings.model,
        parameters=model_parameters(draft.request),
        system_prompt=draft.settings.system_prompt(draft.epoch.reset.template_version),
        history=_history(draft, history_entries),
        kb_meta_prompt=plan.kb_meta_prompt,
        dynamic_blocks=plan.dynamic_blocks,
        prompt=draft.read.current,
        sent_at=draft.now,
        time_zone=draft.policy.time_zone,
        knowledge=_knowledge(draft, deadline, (*draft.origin.log, *history_entries, *carried_entries)),
        tools=draft.settings.functions,
        limits=TurnLimits(max_knowledge_calls=calls, max_model_calls=None),
        cache_key=conversation.cache_key,
        deadline=deadline,
    )


def _knowledge(draft: TurnDraft, expires_at: datetime, log: Sequence[Entry]) -> Knowledge:
    """Name the bases in scope; a restricted turn, and no other, also takes what the user wrote in the whole log."""
    ticket = Ticket(
        user_id=draft.caller.user_id,
        tenant=draft.caller.tenant,
        conversation_id=draft.origin.conversation.id,
        turn_id=draft.response_id,
        base_ids=tuple(binding.base.id for binding in draft.bindings),
        search=draft.settings.search,
        expires_at=expires_at,
    )
    refs = tuple(
        KnowledgeBaseRef(id=binding.base.id, name=binding.base.name, access_mode=binding.role.access_mode)
        for binding in draft.bindings
    )
    mode = strictest_mode(draft.bindings)
    return Knowledge(
        bases=refs,
        access_mode=mode,
        ticket=sign_ticket(ticket, draft.policy.secret),
        user_words="" if mode is AccessMode.FULL else user_words(log),
    )


def _label(draft: TurnDraft) -> Labels:
    """Label the turn with the bases whose text it may hold: its own, and those of the turns that its model gets."""
    own = [Label(binding.base.id, binding.role.access_mode) for binding in draft.bindings]
    withheld = frozenset(draft.epoch.reset.withheld)
    sent = labels_in([entry for entry in draft.origin.log if entry.turn_id not in withheld])
    return joined_labels([*own, *draft.given, *sent])


def _history(draft: TurnDraft, history_entries: Sequence[Entry]) -> tuple[HistoryMessage, ...]:
    """Build the messages before the dynamic context and the current message."""
    return messages_of(sent_entries((*draft.origin.log, *history_entries), draft.epoch.reset))


def _input_bodies(request: TurnRequest) -> tuple[ItemBody, ...]:
    if isinstance(request.input, str):
        return (user_text_body(request.input, new_id),)
    return input_bodies(request.input, new_id)
