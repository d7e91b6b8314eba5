"""The request by which chat_shell runs a turn: made here alone, of the turn's record and the log.

So the first request of a turn, one behind a boundary, and one in another process hold the same bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    EpochState,
    messages_of,
    newest_epoch_state,
    select_sent,
    select_sent_before,
    user_words,
)
from backend.conversations.domain.model_calls import TailMessage
from backend.conversations.domain.placed_blocks import ANCHORED
from backend.prompt.domain.prompt_tail import history_with, place_blocks, tail_of
from backend.prompt.domain.turn_record import TurnRecord, split_context
from shared.models.execution import AccessMode, ExecutionRequest, Knowledge, User
from shared.models.messages import Content, SystemMessage, TurnMessage, UserMessage
from shared.prompts.message_order import without_time_suffix


def request_of(record: TurnRecord, log: Sequence[Entry]) -> ExecutionRequest:
    """Make the request of a turn whose log has grown to this.

    What the model has been sent of the epoch is sent again, byte for byte, with all that the turn has added since.

    Raises:
        ValueError: the log does not hold what the record says of it.
    """
    reset = newest_epoch_state(log)
    parts = _parts_of(log, record, reset)
    response, settings = record.response, record.conversation.settings
    kb_meta_prompt, dynamic_blocks = split_context(_context_in(parts.carried) or record.context, record.context_parts)
    is_restricted = record.access_mode is not AccessMode.FULL
    return ExecutionRequest(
        request_id=record.request_id,
        conversation_id=record.conversation.id,
        turn_id=response.id,
        epoch=log[-1].epoch,
        user=User(id=response.user_id, tenant=response.tenant, display_name=response.user_id),
        model=settings.model,
        parameters=record.parameters,
        system_prompt=settings.system_prompt(reset),
        history=history_with(parts.history, place_blocks(parts.input, record)),
        kb_meta_prompt=kb_meta_prompt,
        dynamic_blocks=dynamic_blocks,
        prompt=_prompt(parts.carried, record),
        sent_at=response.created_at,
        time_zone=record.time_zone,
        knowledge=Knowledge(
            bases=record.bases,
            access_mode=record.access_mode,
            ticket=record.ticket,
            user_words=user_words(log, response.user_id) if is_restricted else "",
        ),
        tools=settings.functions,
        reads_files=reset.reads_files,
        limits=record.limits,
        cache_key=record.conversation.cache_key,
        deadline=record.deadline,
        added=parts.added,
        reminder=record.reminder,
        keeps_reminders=reset.placement == ANCHORED,
        served_tools=settings.served.tools,
    )


def find_unlogged(record: TurnRecord, log: Sequence[Entry], request: ExecutionRequest) -> tuple[TailMessage, ...]:
    """Return the messages of the request that `request_of` makes which stand in no log, in order."""
    moved = place_blocks(_parts_of(log, record, newest_epoch_state(log)).input, record) if record.moved else ()
    return tail_of(request, moved, keeps_context=record.keeps_context)


class _LogParts(NamedTuple):
    """What a request takes from the log; `input` is what of it stood there when the turn began, with its input."""

    input: tuple[Entry, ...]
    history: tuple[Entry, ...]
    carried: Sequence[Entry]
    added: tuple[TurnMessage, ...]


def _parts_of(log: Sequence[Entry], record: TurnRecord, reset: EpochState) -> _LogParts:
    sent = select_sent(log, reset)
    added = messages_of(
        entry for entry in sent if entry.position >= record.input_end and entry.kind is not EntryKind.SUMMARY
    )
    return _LogParts(
        input=select_sent_before(sent, record.input_end),
        history=select_sent_before(sent, record.history_end),
        carried=log[record.history_end : record.input_end],
        added=tuple(message for message in added if not isinstance(message, SystemMessage)),
    )


def _context_in(carried: Sequence[Entry]) -> str:
    """Return the text of the context message; "" where none was sent."""
    stated = [entry.message for entry in carried if entry.kind is EntryKind.DYNAMIC_CONTEXT]
    return "".join(
        message.content for message in stated if isinstance(message, UserMessage) and isinstance(message.content, str)
    )


def _prompt(carried: Sequence[Entry], record: TurnRecord) -> Content | None:
    current = next((entry.message for entry in carried if entry.kind is EntryKind.USER), None)
    if not isinstance(current, UserMessage):
        return None
    return without_time_suffix(current.content, record.response.created_at, record.time_zone)
