"""Building what is stored before a turn runs, and what is sent, once everything about the turn is known."""

from collections.abc import Sequence
from dataclasses import replace

from backend.conversations.domain.authors import add_author_to_bodies
from backend.conversations.domain.conversation_log import (
    Entry,
    EpochReason,
    find_announced_cut,
    find_stated_context,
    select_sent,
)
from backend.conversations.domain.item_bodies import input_bodies, user_text_body
from backend.conversations.domain.placed_blocks import CLASSIC, text_digest
from backend.conversations.domain.responses import (
    Conversation,
    Item,
    ItemBody,
    NewTurn,
    ResponseStatus,
    StoredResponse,
    number_items,
)
from backend.conversations.domain.withheld import labels_in
from backend.knowledge.domain.file_indexes import file_index_of_agent
from backend.knowledge.domain.knowledge import strictest_mode
from backend.knowledge.domain.labels import Label, Labels, join_labels
from backend.openai_api.domain.requested_settings import model_parameters
from backend.openai_api.domain.response_object import new_body
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.block_policy import BlockStatement, block_statements, far_pointer, find_stated_blocks
from backend.prompt.domain.compaction import Load, hand_back_tokens, tools_tokens
from backend.prompt.domain.context_policy import ContextPlan, full_context, plan_context, with_line
from backend.prompt.domain.epochs import Epoch, compact, without_statements
from backend.prompt.domain.execution_request import request_of
from backend.prompt.domain.listed_files import find_left_out
from backend.prompt.domain.prompt_tail import list_moved_texts
from backend.prompt.domain.settings_digest import settings_digest
from backend.prompt.domain.turn_entries import (
    EntryStamp,
    block_entries,
    build_given_entries,
    context_entry,
    current_entry,
    file_entries,
    notice_entry,
    place_entries,
    silent_entry,
)
from backend.prompt.domain.turn_record import PlannedBlock, StoredRecord, TurnRecord, context_parts, record_of, sign
from backend.turns.domain.turn import Turn
from backend.turns.services.turn_draft import TurnDraft
from shared.errors import ContextTooLong
from shared.ids import new_id
from shared.models.execution import AccessMode, KnowledgeBaseRef, TurnLimits
from shared.models.messages import ToolMessage, UserMessage
from shared.prompts.summary import COMPACTED
from shared.tokens import estimate_tokens

NO_CONTEXT = ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)

FIRST_EVENTS = 2
"""`response.created` and `response.in_progress`, appended as soon as the turn's task runs."""


def assemble(draft: TurnDraft) -> tuple[Turn, NewTurn]:
    """Build the turn to run, and the record to store before it runs.

    Raises:
        ContextTooLong: the parts of the prompt that must not be left out do not fit.
    """
    plan = _context(draft)
    epoch = _fit(draft, plan)
    if epoch is not draft.epoch:
        draft = replace(draft, epoch=epoch)
        plan = _context(draft)
    label = _label(draft)
    history_entries, carried_entries = _entries(draft, plan, label)
    entries = (*history_entries, *carried_entries)
    log = (*draft.start.origin.log, *entries)
    given = draft.asked.waited.input_items if draft.asked.waited is not None else show_input(draft.chosen.request)
    bodies = add_author_to_bodies(given, draft.author)
    response, conversation = _response(draft, bodies, label), _conversation(draft, len(entries))
    history_end = draft.log_length + len(history_entries)
    record = sign(_record(draft, plan, response, conversation, history_end), log, draft.policy.secret)
    sequence = draft.start.origin.next_sequence
    turn = Turn(
        record=record,
        request=request_of(record, log),
        log=log,
        next_sequence=sequence + len(bodies),
        is_stored=draft.chosen.request.is_stored,
        starts_epoch=draft.epoch.starts or _is_first_after_edit(draft),
        seen=draft.start.seen,
        card=draft.chosen.meaning.card,
    )
    return turn, _rows(draft, record, entries, number_items(bodies, sequence, response.id))


def _record(
    draft: TurnDraft, context: ContextPlan, response: StoredResponse, conversation: Conversation, history_end: int
) -> TurnRecord:
    mode, card = strictest_mode(draft.chosen.bindings), draft.chosen.meaning.card
    most_calls = draft.policy.max_knowledge_calls
    bases = [
        KnowledgeBaseRef(id=binding.base.id, name=binding.base.name, access_mode=binding.role.access_mode)
        for binding in draft.chosen.bindings
    ]
    keeps_context, carried = context.state is not None, context if draft.read.current is not None else NO_CONTEXT
    moved = [(kind, text, text_digest(text)) for kind, text in list_moved_texts(draft.blocks)]
    stored = StoredRecord(
        request_id=draft.request_id,
        parameters=model_parameters(draft.chosen.request, card),
        time_zone=draft.policy.time_zone,
        bases=(*bases, *filter(None, [draft.project_base])),
        access_mode=mode,
        limits=TurnLimits(
            max_knowledge_calls=min(most_calls, draft.chosen.request.max_tool_calls or most_calls),
            max_model_calls=None,
            hand_back_tokens=hand_back_tokens(card),
        ),
        deadline=draft.now + draft.policy.timeout,
        history_end=history_end,
        input_end=conversation.log_length,
        context="" if keeps_context else carried.text,
        keeps_context=keeps_context,
        with_results=draft.chosen.request.wants_results and mode is AccessMode.FULL,
        reminder=draft.blocks.reminder,
        charged_to=draft.start.charged_to,
        moved=tuple(PlannedBlock(index=at, kind=kind, digest=key) for at, (kind, _, key) in enumerate(moved)),
        context_parts=context_parts(carried.dynamic_blocks),
    )
    texts = {digest: text for _, text, digest in moved}
    return record_of(stored, response, conversation, texts)


def _is_first_after_edit(draft: TurnDraft) -> bool:
    """Return whether an item was taken out since the newest model call: no turn has told of that epoch yet."""
    sent, epoch = draft.start.origin.conversation.sent, draft.epoch
    return epoch.reset.reason is EpochReason.HISTORY_EDITED and sent is not None and sent.epoch != epoch.number


def _fit(draft: TurnDraft, plan: ContextPlan) -> Epoch:
    """Return the epoch, compacted where the conversation has outgrown the model's context window.

    Files of an agent that do not fit beside those which they replace are stated as if nothing had been stated before.

    Raises:
        ContextTooLong: the parts of the prompt that must not be left out do not fit.
    """
    try:
        return _compact(draft, plan)
    except ContextTooLong:
        if not (_statements(draft) and find_stated_blocks(draft.start.origin.log, draft.epoch.reset)):
            raise
        return _compact(replace(draft, epoch=without_statements(draft.epoch, draft.start.origin.log)), plan)


def _compact(draft: TurnDraft, plan: ContextPlan) -> Epoch:
    load = Load(
        system_prompt=draft.chosen.settings.system_prompt(draft.epoch.reset),
        current=draft.read.current,
        needs_end=draft.start.needs_log_end,
        given=(*draft.read.history, *(UserMessage(content=content) for content in draft.blocks.files)),
        blocks=_block_texts(draft),
        tools_tokens=tools_tokens(draft.chosen.settings.definitions),
        context_tokens=estimate_tokens(plan.text),
        restated_tokens=estimate_tokens(full_context(draft.base_texts, draft.dynamic_blocks).text),
    )
    return compact(draft.epoch, draft.start.origin.log, load, draft.chosen.meaning.card)


def _block_texts(draft: TurnDraft) -> tuple[str, ...]:
    """Return the texts that the turn's agent adds to the request."""
    stated = [statement.text for statement in _statements(draft)]
    moved = [text for _, text in list_moved_texts(draft.blocks)]
    return (*stated, *moved, draft.blocks.reminder)


def _context(draft: TurnDraft) -> ContextPlan:
    """Plan the dynamic context of the turn; it is empty where nothing is asked for which it could stand before.

    A request carries a context that is not kept before its current message alone.
    """
    if _context_place(draft) is None:
        return NO_CONTEXT
    if not draft.policy.keeps_context:
        return full_context(draft.base_texts, draft.dynamic_blocks) if draft.read.current is not None else NO_CONTEXT
    log, reset = draft.start.origin.log, draft.epoch.reset
    said = find_stated_context(log, reset)
    plan = plan_context(said, draft.base_texts, draft.dynamic_blocks)
    pointer = far_pointer(select_sent(log, reset), _statements(draft)) if find_stated_blocks(log, reset) else ""
    return with_line(plan, said, pointer) if pointer else plan


def _context_place(draft: TurnDraft) -> int | None:
    """Return before which of the input's messages the context stands: the newest of the user, else the first of all.

    It is None where the turn goes on from what its conversation holds already, with its context.
    """
    read = draft.read
    at = read.question_at
    begins = not draft.start.origin.log and bool(read.history) and not isinstance(read.history[-1], ToolMessage)
    return 0 if at is None and begins else at


def _statements(draft: TurnDraft) -> tuple[BlockStatement, ...]:
    """Return what the turn logs of its agent's blocks; nothing where it logs no context."""
    if _context_place(draft) is None or draft.blocks.placement == CLASSIC:
        return ()
    return block_statements(find_stated_blocks(draft.start.origin.log, draft.epoch.reset), draft.blocks)


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
    at = _context_place(draft)
    is_cut = epoch.reset.begins_at > find_announced_cut(draft.start.origin.log)
    notices = (notice_entry(COMPACTED, stamp),) if is_cut and at is not None else ()
    blocks = block_entries(_statements(draft), stamp)
    left_out = find_left_out(draft.start.origin.log, epoch.reset) if epoch.reset.reads_files and at is not None else ()
    files = file_entries((*left_out, *draft.blocks.files), stamp)
    given, context = build_given_entries(draft.read, stamp), context_entry(plan, stamp)
    before, carried = (*given[:at], *notices, *blocks, *files), (*context, *current_entry(draft.read, stamp))
    if draft.read.current is None:
        before, carried = (*before, *context, *(given[at:] if at is not None else ())), ()
    if epoch.starts and not before and not carried:
        before = (silent_entry(stamp),)
    own = place_entries((*before, *carried), draft.log_length, epoch.reset if epoch.starts else None)
    return own[: len(before)], own[len(before) :]


def _response(draft: TurnDraft, bodies: Sequence[ItemBody], label: Labels) -> StoredResponse:
    conversation_id = draft.start.origin.conversation.id
    asked_at = draft.asked.waited.created_at if draft.asked.waited is not None else draft.now
    use = draft.preset_use
    shown = draft.chosen.settings
    if use is not None:
        shown = shown.model_copy(update={"instructions": use.own.instructions})
    body = new_body(draft.chosen.request, shown, draft.response_id, conversation_id, asked_at)
    return StoredResponse(
        id=draft.response_id,
        tenant=draft.asked.caller.tenant,
        user_id=draft.asked.caller.user_id,
        conversation_id=conversation_id,
        created_at=draft.now,
        status=ResponseStatus.IN_PROGRESS,
        background=draft.chosen.request.is_background,
        body={**body, "model": draft.chosen.meaning.name},
        input_items=tuple(bodies),
        log_end=None,
        items_end=None,
        last_event=FIRST_EVENTS - 1,
        replica=draft.policy.replica,
        label=label,
        preset_use=draft.preset_use,
        ran_with=settings_digest(draft.chosen.settings, draft.blocks) if draft.start.seen is not None else None,
    )


def _conversation(draft: TurnDraft, entry_count: int) -> Conversation:
    """Return the conversation as it is once the turn is stored."""
    settings = draft.chosen.settings
    changes = {
        **settings.model_dump(include={"model", "instructions", "knowledge_base_ids"}),
        "functions": settings.functions,
        "search": settings.search,
        "served": settings.served,
        "preset_use": draft.preset_use,
        "epoch": draft.epoch.number,
        "log_length": draft.log_length + entry_count,
        "running_response_id": draft.response_id,
        "latest_response_id": draft.response_id,
    }
    return draft.start.origin.conversation.model_copy(update=changes)


def _rows(draft: TurnDraft, record: TurnRecord, entries: Sequence[Entry], items: Sequence[Item]) -> NewTurn:
    origin = draft.start.origin
    return NewTurn(
        conversation=record.conversation,
        expected_log_length=None if origin.is_new else origin.conversation.log_length,
        response=record.response,
        entries=(*(origin.log if origin.is_new else ()), *entries),
        items=(*origin.items, *items),
        plan=record.write(),
        context_parts=record.write_parts(),
        has_waited=draft.asked.waited is not None,
        texts=tuple(record.texts.values()),
    )


def _label(draft: TurnDraft) -> Labels:
    """Label the turn with the bases whose text it may hold: its own, and those of the turns that its model gets.

    The files of its agent, shown or searched, are one of them: who may use the agent may read their file index.
    """
    own = [Label(binding.base.id, binding.role.access_mode) for binding in draft.chosen.bindings]
    agent = draft.blocks.agent
    if agent is not None and (draft.blocks.project_files or draft.project_base is not None):
        own.append(Label(file_index_of_agent(draft.asked.caller.tenant, agent.id).id, AccessMode.FULL))
    withheld = frozenset(draft.epoch.reset.withheld)
    sent = labels_in([entry for entry in draft.start.origin.log if entry.turn_id not in withheld])
    return join_labels([*own, *draft.start.labels, *sent])


def show_input(request: TurnRequest) -> tuple[ItemBody, ...]:
    """Return the items of an input as clients get them, with new ids."""
    if isinstance(request.input, str):
        return (user_text_body(request.input, new_id),)
    return input_bodies(request.input, new_id)
