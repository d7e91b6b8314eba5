"""The log entries of history that a caller gives without running a turn."""

from collections.abc import Sequence
from datetime import datetime

from backend.conversations.domain.conversation_log import Entry, kind_of, part_of
from backend.conversations.domain.input_items import InputItem, SystemItem
from backend.conversations.domain.responses import Conversation
from shared.errors import InvalidRequest
from shared.models.messages import HistoryMessage


def check_no_instructions(given: Sequence[InputItem]) -> None:
    """Refuse messages of a system or a developer: instructions belong to a turn, and are not kept in the log.

    Raises:
        InvalidRequest: there is such a message; `param` names its role.
    """
    for place, item in enumerate(given):
        if isinstance(item, SystemItem):
            raise InvalidRequest(
                f"A conversation keeps no {item.role} messages; give 'instructions' with a response.",
                param=f"items[{place}].role",
            )


def seed_entries(conversation: Conversation, messages: Sequence[HistoryMessage], now: datetime) -> tuple[Entry, ...]:
    """Return the entries for messages that are appended to the log of a conversation.

    They belong to no turn. Each is a part of the conversation's own, so that it can become void by itself.
    """
    return tuple(
        Entry(
            position=conversation.log_length + place,
            epoch=conversation.epoch,
            turn_id=part_of(conversation.id, conversation.log_length + place),
            kind=kind_of(message),
            message=message,
            created_at=now,
        )
        for place, message in enumerate(messages)
    )
