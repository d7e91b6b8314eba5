"""Responses, conversations and their items as they are stored."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EpochState
from backend.conversations.domain.members import ConversationRole, People
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.served_tools import ServedTools
from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.labels import Labels
from backend.knowledge.domain.tickets import SearchOptions
from shared.errors import TurnRunning, Unavailable
from shared.models.execution import AccessMode, ToolDefinition
from shared.models.values import JsonObject, Value, objects_in
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS
from shared.prompts.message_order import join_blocks

ItemBody = JsonObject
"""An item in the form that a client receives, which is that of OpenAI's API, with `id` and `status`."""

KEY_HEX_DIGITS = 40
"""160 bits; OpenAI's `prompt_cache_key` takes at most 64 characters."""


class ResponseStatus(StrEnum):
    """The status of a response, with OpenAI's values; `queued` lasts only until the turn starts."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Whether the turn has ended."""
        return self not in (ResponseStatus.QUEUED, ResponseStatus.IN_PROGRESS)


class ConversationSettings(Value):
    """The settings of a turn, which later turns use where they do not set other values.

    The oldest stored rows have no `search`. `served` is stored apart from the others.
    """

    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    knowledge_base_ids: tuple[str, ...]
    search: SearchOptions = SearchOptions()
    served: ServedTools = ServedTools()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """All tools whose change begins an epoch: the client's functions and those of tool servers."""
        return (*self.functions, *(tool.definition for tool in self.served.tools))

    def system_prompt(self, reset: EpochState) -> str:
        """Return the system message: the same text in every turn of the epoch that began with this reset."""
        return join_blocks((reset.opening, self.instructions, KNOWLEDGE_SECTIONS[reset.template_version]))


class PresetUse(Value):
    """The preset by whose name a turn asked for its model, and the settings of the turn without that preset.

    `own.model` is the model that ran, `agent_id` the id of the agent. `instructions` are those of the turn with what
    the preset has put before them, which clients are not shown: a reader of a response need not be a user of the agent.
    """

    response_id: str
    name: str
    own: ConversationSettings
    agent_id: str = ""
    instructions: str = ""

    @property
    def agent(self) -> AgentRef:
        """The agent that the preset was made of."""
        return AgentRef(name=self.name, id=self.agent_id)


class SettingsDigest(NamedTuple):
    """What a turn ran with: `header` stands for the settings whose change begins an epoch, `bases` for the bases."""

    header: str
    bases: str


ARRIVING = "arriving"
"""The running response of a conversation whose turn still runs in the cell that its tenant has left (backend/cells)."""


class Conversation(Value):
    """A dialogue of the user who created it, and of those with whom they share it.

    Every append compares `log_length` with the expected length. `instructions`, `model`, `functions`,
    `knowledge_base_ids`, `search` and `served` are those of the newest turn, used by turns that do not set them.
    `running_response_id` is the turn that holds the conversation, `latest_response_id` the turn that was started last.
    Where that turn named its model by a preset, `preset_use` holds what they are without it.
    `cache_key` is sent to the provider and shared with forks. `sent` is the prompt of the newest model call outside of
    void turns. `members` are the roles of the others by user id, None until it is shared.
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
    preset_use: PresetUse | None = None
    served: ServedTools = ServedTools()
    members: dict[str, ConversationRole] | None = None

    @property
    def people(self) -> People:
        """Who may use it."""
        return People(tenant=self.tenant, creator_id=self.user_id, others=self.members)

    @property
    def refusal(self) -> TurnRunning | Unavailable:
        """The error for whoever needs it free, while a turn holds it."""
        if self.running_response_id == ARRIVING:
            return Unavailable("The conversation still follows its tenant to this cell.", retry_after_seconds=1)
        return TurnRunning("A turn is running on this conversation.")

    @property
    def settings(self) -> ConversationSettings:
        """The settings of the newest turn."""
        return ConversationSettings(
            model=self.model,
            instructions=self.instructions,
            functions=self.functions,
            knowledge_base_ids=self.knowledge_base_ids,
            search=self.search,
            served=self.served,
        )

    @property
    def own_settings(self) -> ConversationSettings:
        """The settings of the newest turn without those that a preset gave it; `served` tells its own by itself."""
        if self.preset_use is not None:
            return self.preset_use.own.model_copy(update={"served": self.served})
        return self.settings


class Item(Value):
    """An item of a conversation; `sequence` orders the items of one conversation, 0, 1, 2 …"""

    id: str
    sequence: int
    response_id: str | None
    body: ItemBody


class Removal(Value):
    """An item that is taken out of a conversation, with the entries of the log that do so in the epoch `epoch`."""

    item: Item
    epoch: int
    entries: tuple[Entry, ...]


class OwnedItem(Value):
    """An item with the conversation that it was found in; the turn `item.response_id` may be withheld there."""

    conversation_id: str
    item: Item
    is_shared: bool = False


class SeenPoint(Value):
    """What a client had seen (`history_fingerprint.HistoryFingerprint.digest`) when the log had this length."""

    digest: str
    log_end: int


class OpenedConversation(Value):
    """A conversation with its log (empty where it was not requested) and the sequence number of its next item.

    `seen` is what a client had seen at the end of the newest response, where that is known.
    """

    conversation: Conversation
    log: tuple[Entry, ...]
    next_sequence: int
    seen: SeenPoint | None = None


class Hold(NamedTuple):
    """A turn in the hands of one process: what it writes is refused once another has taken the turn over."""

    response_id: str
    conversation_id: str
    fence: int


class StoredResponse(Value):
    """A response as stored: `body` is the object a client retrieves, its output included.

    `log_end` is the length of the log after the turn (None while it runs), at which a fork cuts the log; `items_end` is
    the same for the items. `last_event` is the sequence number of the newest event that is known to be stored, or of
    the terminal event. `replica` is the process that runs the turn, `fence` how often the turn was taken over before by
    another process. `label` determines who may read the response. `seen` is the `digest` of the
    `HistoryFingerprint` of what a client has seen at its end, None where the answer was cut, or followed one that was.
    `preset_use` is set where the turn named its model by a preset. `ran_with` is stored with the fingerprint and not
    read back; it is None of a turn that was taken over, as the fingerprint is.
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
    fence: int = 0
    seen: str | None = None
    preset_use: PresetUse | None = None
    ran_with: SettingsDigest | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether it rests on a base that its user may only ask about."""
        return any(label.mode is not AccessMode.FULL for label in self.label)

    @property
    def hold(self) -> Hold:
        """The turn in the hands of the process that runs it."""
        return Hold(response_id=self.id, conversation_id=self.conversation_id, fence=self.fence)

    @property
    def shown_conversation_id(self) -> str:
        """The conversation that clients see it in, whose members may use it.

        A joined response, which shows the answers of several models, holds another one, of which nobody knows.
        """
        shown = self.body.get("conversation")
        found = shown.get("id") if isinstance(shown, dict) else None
        return found if isinstance(found, str) else self.conversation_id


JOINED_IN = "joined_response_id"
"""The field of a lane's response that names the joined response."""


def shows(body: JsonObject, conversation_id: str) -> bool:
    """Return whether clients see a response in this conversation."""
    shown = body.get("conversation")
    return isinstance(shown, dict) and shown.get("id") == conversation_id


def lane_ids(body: JsonObject) -> tuple[str, ...]:
    """Return the ids of the responses that a joined response shows; none of any other."""
    return tuple(str(lane["response_id"]) for lane in objects_in(body.get("lanes") or []))


def lane_conversations(body: JsonObject) -> tuple[str, ...]:
    """Return the ids of the conversations in which the models of a joined response have answered."""
    return tuple(str(lane["conversation_id"]) for lane in objects_in(body.get("lanes") or []))


class NewTurn(NamedTuple):
    """The records that are written in one transaction before a turn's first request is sent.

    `conversation` is the state after the write, with the running response set and `log_length` increased.
    `expected_log_length` is the length that the log must have for the write, None when the conversation is created.
    A fork is a new conversation whose entries and items begin with copies of the first ones of another. `claim` is the
    Idempotency-Key of the request, where it has one. `plan` is what another process needs, besides the log, to continue
    the turn, and `context_parts` a part of it that stands apart. `texts` stand in its requests, but in no log; each is
    kept once for the whole conversation. One that `has_waited` begins only where it comes next, and leaves those that
    wait.
    """

    conversation: Conversation
    expected_log_length: int | None
    response: StoredResponse
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]
    claim: KeyClaim | None = None
    plan: str | None = None
    context_parts: str | None = None
    has_waited: bool = False
    texts: tuple[str, ...] = ()


class Exchange(NamedTuple):
    """A complete exchange with tools, written in one transaction before the next model call.

    `output` are all items so far, `last_event` is the number of the newest event about them. `steered_by` are the ids
    of the waiting turns whose messages are among the entries: they wait no more.
    """

    entries: tuple[Entry, ...]
    output: tuple[ItemBody, ...]
    last_event: int
    calls: CallsMade = NO_CALLS
    steered_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a running turn has said so far, stored in case its process ends.

    Only those of `calls` are stored that are not stored yet; `calls.sent` is not stored.
    """

    hold: Hold
    output: Sequence[ItemBody]
    last_event: int
    calls: CallsMade = NO_CALLS


class FinishedTurn(NamedTuple):
    """The records that are written in one transaction before the terminal event of a turn is sent."""

    response: StoredResponse
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]
    calls: CallsMade = NO_CALLS


def conversation_cache_key(secret: str, tenant: str, sign: str) -> str:
    """Derive the cache key, which is constant for a conversation and reveals neither tenant nor `sign` to a provider.

    `sign` tells a conversation from all others: its id, or the chain over the message that opens it.
    """
    message = f"{tenant}\x00{sign}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()[:KEY_HEX_DIGITS]


def number_items(bodies: Sequence[ItemBody], first_sequence: int, response_id: str | None) -> tuple[Item, ...]:
    """Return items with their sequence numbers; items that no turn created have no response."""
    return tuple(
        Item(id=str(body["id"]), sequence=sequence, response_id=response_id, body=body)
        for sequence, body in enumerate(bodies, first_sequence)
    )
