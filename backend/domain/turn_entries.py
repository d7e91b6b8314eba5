"""What a turn writes into the conversation before its first request is sent."""

from collections.abc import Sequence
from datetime import datetime

from backend.domain.conversation_log import Entry, EntryKind
from backend.domain.responses import Item, ItemBody
from backend.domain.turn_input import TurnInput
from shared.models.messages import AssistantMessage, HistoryMessage, ToolMessage, UserMessage
from shared.models.values import Value
from shared.prompts.time_suffix import with_time_suffix


class TurnStamp(Value):
    """What stands on the entries that a turn begins with, and the time its current message carries."""

    turn_id: str
    epoch: int
    sent_at: datetime
    time_zone: str
    label: tuple[str, ...] = ()


def given_entries(read: TurnInput, position: int, stamp: TurnStamp) -> tuple[Entry, ...]:
    """Make the entries of the history that the input brought, as given."""
    return tuple(_entry(message, place, stamp) for place, message in enumerate(read.history, position))


def current_entry(read: TurnInput, position: int, stamp: TurnStamp) -> tuple[Entry, ...]:
    """Make the entry of the current message, with its date suffix; none when the turn continues from results."""
    if read.current is None:
        return ()
    content = with_time_suffix(read.current, stamp.sent_at, stamp.time_zone)
    return (_entry(UserMessage(content=content), position, stamp),)


def numbered_items(bodies: Sequence[ItemBody], first_sequence: int, response_id: str) -> tuple[Item, ...]:
    """Give items their places in the conversation."""
    return tuple(
        Item(id=body["id"], sequence=sequence, response_id=response_id, body=body)
        for sequence, body in enumerate(bodies, first_sequence)
    )


def _entry(message: HistoryMessage, position: int, stamp: TurnStamp) -> Entry:
    return Entry(
        position=position,
        epoch=stamp.epoch,
        turn_id=stamp.turn_id,
        kind=_kind(message),
        message=message,
        created_at=stamp.sent_at,
        label=stamp.label,
    )


def _kind(message: HistoryMessage) -> EntryKind:
    match message:
        case AssistantMessage():
            return EntryKind.ASSISTANT
        case ToolMessage():
            return EntryKind.TOOL_RESULT
        case _:
            return EntryKind.USER
