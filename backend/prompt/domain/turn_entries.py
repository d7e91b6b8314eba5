"""The log entries and items that a turn writes before its first request is sent."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.attached_files import FileMessage
from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochState, kind_of
from backend.conversations.domain.responses import ItemBody
from backend.conversations.domain.turn_input import ParsedInput
from backend.conversations.domain.waiting_turns import Entered
from backend.knowledge.domain.labels import Labels
from backend.prompt.domain.block_policy import BlockStatement
from backend.prompt.domain.context_policy import ContextPlan
from shared.models.messages import Content, HistoryMessage, SystemMessage, UserMessage
from shared.prompts.message_order import with_time_suffix


class EntryStamp(NamedTuple):
    """The values that all entries at the beginning of a turn share, and the time for the date suffix."""

    turn_id: str
    epoch: int
    sent_at: datetime
    time_zone: str
    label: Labels = ()


def build_given_entries(read: ParsedInput, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entries of the history that the input contains, unchanged.

    A message of the user that nobody has answered gets its date suffix though the system speaks behind it.
    """
    given = list(read.history)
    at = read.question_at
    if at is not None and all(isinstance(message, SystemMessage) for message in given[at + 1 :]) and at < len(given):
        given[at] = _date(given[at], stamp)
    return tuple(_entry(kind_of(message), _plain(message), stamp) for message in given)


def _date(message: HistoryMessage, stamp: EntryStamp) -> HistoryMessage:
    if not isinstance(message, UserMessage) or isinstance(message, FileMessage):
        return message
    return _stamp_content(message.content, stamp)


def _stamp_content(content: Content, stamp: EntryStamp) -> UserMessage:
    return UserMessage(content=with_time_suffix(content, stamp.sent_at, stamp.time_zone))


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


def file_entries(files: Iterable[Content], stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entries of the files that were uploaded with the current message, which they stay glued to."""
    return tuple(_entry(EntryKind.FILE, UserMessage(content=content), stamp) for content in files)


def context_entry(plan: ContextPlan, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entry of the dynamic context, as it is sent; none where it is empty or not stored."""
    if plan.state is None or not plan.text:
        return ()
    entry = _entry(EntryKind.DYNAMIC_CONTEXT, UserMessage(content=plan.text), stamp)
    return (entry.model_copy(update={"context": plan.state}),)


def current_entry(read: ParsedInput, stamp: EntryStamp) -> tuple[Entry, ...]:
    """Return the entry of the current message, with its date suffix; none where no message of the user is the last."""
    if read.current is None:
        return ()
    return (_entry(EntryKind.USER, _stamp_content(read.current, stamp), stamp),)


def silent_entry(stamp: EntryStamp) -> Entry:
    """Return an entry that no request holds: an epoch begins with it in a turn that adds nothing before its answer."""
    return _entry(EntryKind.NOTICE, None, stamp)


def place_entries(entries: Sequence[Entry], position: int, reset: EpochState | None) -> tuple[Entry, ...]:
    """Return a turn's entries with their positions, and with the reset of a new epoch on the first of them."""
    first = {"reset": reset}
    return tuple(
        entry.model_copy(update={"position": place, **(first if place == position else {})})
        for place, entry in enumerate(entries, position)
    )


def with_entered(output: Sequence[ItemBody], entered: Sequence[Entered]) -> tuple[ItemBody, ...]:
    """Return the items of a turn's output with those of the messages that entered it, where they did."""
    shown: list[ItemBody] = []
    start = 0
    for each in entered:
        shown += output[start : each.output_count]
        shown += each.items
        start = each.output_count
    return (*shown, *output[start:])


def _entry(kind: EntryKind, message: HistoryMessage | None, stamp: EntryStamp) -> Entry:
    return Entry(
        position=0,
        epoch=stamp.epoch,
        turn_id=stamp.turn_id,
        kind=kind,
        message=message,
        created_at=stamp.sent_at,
        label=stamp.label,
    )
