"""Responses, conversations and their items as they are stored."""

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade
from backend.conversations.domain.prompt_record import SentPrompt
from backend.knowledge.domain.labels import Labels
from backend.knowledge.domain.tickets import SearchOptions
from shared.models.execution import ToolDefinition
from shared.models.values import JsonObject, Value
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS

ItemBody = JsonObject
"""An item as a client sees it, in OpenAI's words, with `id` and `status`."""

KEY_HEX_DIGITS = 40
"""160 bits; OpenAI's `prompt_cache_key` takes at most 64 characters."""


class ResponseStatus(StrEnum):
    """The status of a response, in OpenAI's words; `queued` lasts only until the turn starts."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (ResponseStatus.QUEUED, ResponseStatus.IN_PROGRESS)


class Conversation(Value):
    """A dialogue of one user.

    `log_length` is the compare-and-set guard of every append. `instructions`, `model`, `functions`,
    `knowledge_base_ids` and `search` are those of the newest turn, kept for turns that do not name them.
    `running_response_id` is the turn that holds the conversation, `latest_response_id` the newest begun.
    `cache_key` goes to the provider and is shared with forks. `sent` is what the newest model call sent that no
    void turn made.
    """

    id: str
    tenant: str
    user_id: str
    created_at: datetime
    metadata: dict[str, str]
    log_length: int
    epoch: int
    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    knowledge_base_ids: tuple[str, ...]
    cache_key: str
    running_response_id: str | None
    latest_response_id: str | None
    search: SearchOptions = SearchOptions()
    sent: SentPrompt | None = None


class ConversationSettings(Value):
    """What a turn runs with; it stays in force for later turns that name nothing else.

    Early rows of conversations have no `search`.
    """

    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    knowledge_base_ids: tuple[str, ...]
    search: SearchOptions = SearchOptions()

    def system_prompt(self, template_version: int) -> str:
        """Return the system message: the same text in every turn of an epoch."""
        section = KNOWLEDGE_SECTIONS[template_version]
        return f"{self.instructions}\n\n{section}" if self.instructions.strip() else section


class Item(Value):
    """An item of a conversation; `sequence` orders the items of one conversation, 0, 1, 2 …"""

    id: str
    sequence: int
    response_id: str | None
    body: ItemBody


class OpenedConversation(Value):
    """A conversation with its log, or without where that was not asked for; `next_sequence` is its next item's."""

    conversation: Conversation
    log: tuple[Entry, ...]
    next_sequence: int


class StoredResponse(Value):
    """A response as stored: `body` is the object a client retrieves, its output included.

    `log_end` is the log's length after the turn (None while it runs), where a fork cuts;
    `items_end` the same for the conversation's items. `last_event` is the sequence number of the newest
    event that is known to be kept, once terminal that of the terminal event. `replica` is the process that
    runs the turn. `label` is the turn's: who may read what it says.
    """

    id: str
    tenant: str
    user_id: str
    conversation_id: str
    created_at: datetime
    status: ResponseStatus
    background: bool
    body: JsonObject
    input_items: tuple[ItemBody, ...]
    log_end: int | None
    items_end: int | None
    last_event: int
    replica: str
    label: Labels = ()


class NewTurn(Value):
    """All that is written, in one transaction, before a turn's first request is sent.

    `conversation` is its state after the write (running response set, log_length grown);
    `expected_log_length` is the length that the log must have for the write to happen, None when the
    conversation is created here. A fork is a created conversation whose entries and items begin with
    copies of the first ones of another.
    """

    conversation: Conversation
    expected_log_length: int | None
    response: StoredResponse
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]


class FinishedTurn(Value):
    """All that is written, in one transaction, before the terminal event of a turn is sent."""

    response: StoredResponse
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]
    calls: CallsMade = NO_CALLS


def conversation_cache_key(secret: str, tenant: str, conversation_id: str) -> str:
    """Derive the key: constant for a conversation, and telling a provider neither tenant nor id."""
    message = f"{tenant}\x00{conversation_id}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()[:KEY_HEX_DIGITS]
