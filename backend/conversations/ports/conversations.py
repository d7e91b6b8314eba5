"""Storage of conversations, their logs, items and responses."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade, ModelCall
from backend.conversations.domain.responses import (
    Conversation,
    FinishedTurn,
    Item,
    ItemBody,
    NewTurn,
    OpenedConversation,
    StoredResponse,
)
from backend.knowledge.domain.labels import Labels


class ConversationStore(Protocol):
    """Conversations outside of turns. Ownership is the caller's to check: rows carry tenant and user."""

    async def create(self, conversation: Conversation, entries: Sequence[Entry], items: Sequence[Item]) -> None:
        """Store a new conversation with what it begins with."""
        ...

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return the conversation, or None when there is none."""
        ...

    async def opened(
        self, conversation_id: str, needs_log: Callable[[Conversation], bool]
    ) -> OpenedConversation | None:
        """Return the conversation, in the same unit of work its log where `needs_log` says so; None when there is none.

        Raises:
            CorruptRecord: a row cannot be read; the message names conversation and position.
        """
        ...

    async def set_metadata(self, conversation_id: str, metadata: dict[str, str]) -> None:
        """Replace the caller's metadata."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its log and items; its responses stay.

        Raises:
            TurnRunning: a turn holds it. Retryable later.
        """
        ...

    async def append(
        self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry], items: Sequence[Item]
    ) -> None:
        """Append outside of a turn.

        Raises:
            TurnRunning: a turn holds the conversation, or the log has another length by now.
        """
        ...

    async def log(self, conversation_id: str, end: int | None = None) -> tuple[Entry, ...]:
        """Return the entries at positions below `end` (all of them without it), in order.

        Raises:
            CorruptRecord: a row cannot be read; the message names conversation and position.
        """
        ...

    async def labels(self, conversation_id: str) -> Mapping[str, Labels]:
        """Return the label of each turn that has one, by the turn's id."""
        ...

    async def items(self, conversation_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Item, ...]:
        """Return up to `limit` items behind the item `after` in the given order.

        Raises:
            NotFound: `after` names no item of this conversation.
        """
        ...

    async def all_items(self, conversation_id: str, end: int) -> tuple[Item, ...]:
        """Return the items with a sequence below `end`, in order."""
        ...

    async def find_item(self, conversation_id: str, item_id: str) -> Item | None:
        """Return one item, or None."""
        ...


class TurnStore(Protocol):
    """What a turn writes. Each method is one transaction."""

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and take the conversation for it.

        Raises:
            TurnRunning: another turn holds the conversation, or its log has grown meanwhile.
        """
        ...

    async def append(
        self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry], calls: CallsMade = NO_CALLS
    ) -> None:
        """Append what a running turn has added, before its next model call, and keep its calls so far.

        Raises:
            TurnRunning: the log has another length; somebody else wrote.
        """
        ...

    async def checkpoint(
        self, response_id: str, output: Sequence[ItemBody], last_event: int, calls: CallsMade = NO_CALLS
    ) -> None:
        """Keep what a running turn has said so far, should this process die; no effect once terminal.

        Of `calls` those are kept that are not there yet; what the newest one sent is not.
        """
        ...

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and free the conversation; False when it had ended already."""
        ...

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""
        ...

    async def model_calls(self, response_id: str) -> tuple[ModelCall, ...]:
        """Return the calls of a turn that are kept, in order.

        Raises:
            CorruptRecord: a row cannot be read; the message names response and call.
        """
        ...

    async def delete(self, response_id: str) -> None:
        """Make a response unretrievable, and forget its calls; the conversation keeps its log and items."""
        ...

    async def unfinished(self, *, alive_since: datetime | None) -> tuple[StoredResponse, ...]:
        """Return responses in progress whose replica has not been seen alive since that instant.

        Without an instant: every one in progress, for a process that knows it is the only replica.
        """
        ...

    async def beat(self, replica: str, now: datetime) -> None:
        """Record that this replica lives."""
        ...
