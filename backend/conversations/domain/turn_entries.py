"""The log entries and items that a turn writes before its first request is sent."""

from collections.abc import Sequence
from datetime import datetime

from backend.conversations.domain.attached_files import FileMessage
from backend.conversations.domain.block_policy import BlockStatement
from backend.conversations.domain.context_policy import ContextPlan
from backend.conversations.domain.conversation_log import Entry, EntryKind, Reset, kind_of
from backend.conversations.domain.placed_blocks import PlacedBlocks
from backend.conversations.domain.responses import Item, ItemBody
from backend.conversations.domain.turn_input import ParsedInput
from backend.conversations.domain.waiting_turns import Entered
from backend.knowledge.domain.labels import Labels
from shared.models.messages import HistoryMessage, UserMessage
from shared.models.values import Value
from shared.prompts.message_order import with_time_suffix


class EntryStamp(Value):
    """The values that all entries at the beginning of a turn share, and the time for the date suffix."""

    turn_id: str
    epoch: int
    sent_at: datetime
    time_zone: str
    label: Labels = ()


def given_entries(read: ParsedInput, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entries of the history that the input contains, unchanged."""
    return tuple(_entry(kind_of(message), _plain(message), stamp) for message in read.history)


def _plain(message: HistoryMessage) -> HistoryMessage:
    """Return a message as it is sent: that of a file is one of the user."""
    return UserMessage(content=message.content) if isinstance(message, FileMessage) else message


def notice_entry(text: str, stamp: EntryStamp) -> Entry:
    """Return the entry of a notice to the model."""
    return _entry(EntryKind.NOTICE, UserMessage(content=text), stamp)


def block_entries(statements: Sequence[BlockStatement], stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entries that state an agent's blocks."""
    return tuple(
        _entry(each.kind, UserMessage(content=each.text), stamp).model_copy(update={"block": each.mark})
        for each in statements
    )


def file_entries(blocks: PlacedBlocks, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entries of the files that were uploaded with the current message, which they stay glued to."""
    return tuple(_entry(EntryKind.FILE, UserMessage(content=content), stamp) for content in blocks.files)


def context_entry(plan: ContextPlan, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entry of the dynamic context, as it is sent; none where it is empty or not stored."""
    if plan.state is None or not plan.text:
        return ()
    entry = _entry(EntryKind.DYNAMIC_CONTEXT, UserMessage(content=plan.text), stamp)
    return (entry.model_copy(update={"context": plan.state}),)


def current_entry(read: ParsedInput, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entry of the current message, with its date suffix; none when the turn continues from results."""
    if read.current is None:
        return ()
    content = with_time_suffix(read.current, stamp.sent_at, stamp.time_zone)
    return (_entry(EntryKind.USER, UserMessage(content=content), stamp),)


def placed(entries: Sequence[Entry], position: int, reset: Reset | None) -> tuple[Entry, ...]:
    """Return a turn's entries with their positions, and with the reset of a new epoch on the first of them."""
    numbered = [entry.model_copy(update={"position": place}) for place, entry in enumerate(entries, position)]
    return (numbered[0].model_copy(update={"reset": reset}), *numbered[1:])


def with_entered(output: Sequence[ItemBody], entered: Sequence[Entered]) -> tuple[ItemBody, ...]:
    """Return the items of a turn's output with those of the messages that entered it, where they did."""
    shown: list[ItemBody] = []
    start = 0
    for each in entered:
        shown += output[start : each.output_count]
        shown += each.items
        start = each.output_count
    return (*shown, *output[start:])


def numbered_items(bodies: Sequence[ItemBody], first_sequence: int, response_id: str | None) -> tuple[Item, ...]:
    """Return items with their sequence numbers; items that no turn created have no response."""
    return tuple(
        Item(id=str(body["id"]), sequence=sequence, response_id=response_id, body=body)
        for sequence, body in enumerate(bodies, first_sequence)
    )


def _entry(kind: EntryKind, message: HistoryMessage, stamp: EntryStamp) -> Entry:
    return Entry(
        position=0,
        epoch=stamp.epoch,
        turn_id=stamp.turn_id,
        kind=kind,
        message=message,
        created_at=stamp.sent_at,
        label=stamp.label,
    )
