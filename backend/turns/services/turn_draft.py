"""A turn that is being prepared, and the operator's settings for all turns."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.conversations.domain.attached_files import check_read
from backend.conversations.domain.history_fingerprint import HistoryFingerprint
from backend.conversations.domain.placed_blocks import NO_BLOCKS, PlacedBlocks
from backend.conversations.domain.responses import (
    ConversationSettings,
    PresetUse,
    StoredResponse,
)
from backend.conversations.domain.turn_input import ParsedInput
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Labels
from backend.openai_api.domain.client_left import BY_API, DisconnectPolicy
from backend.openai_api.domain.presets import ResolvedModel
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.context_policy import BaseText
from backend.prompt.domain.epochs import Epoch
from backend.turns.domain.turn_origin import Origin
from shared.models.execution import (
    DynamicBlock,
    KnowledgeBaseRef,
)
from shared.models.messages import ToolMessage, UserMessage


@dataclass(frozen=True)
class TurnPolicy:
    """The operator's settings for all turns.

    `secret` signs tickets; `replica` names this process. `system_prompt` is the default with which system messages
    open, with placeholders. With `keeps_context` the context about bases and dynamic blocks is logged, and only changes
    are sent again; otherwise all of it is sent in every turn. `drain` is how long turns may run on while this process
    shuts down, None for their whole time. With `strict_requests` what is not known in a request is
    refused.
    """

    time_zone: str
    timeout: timedelta
    max_knowledge_calls: int
    replica: str
    secret: str
    system_prompt: str = ""
    keeps_context: bool = True
    drain: timedelta | None = None
    strict_requests: bool = False
    on_disconnect: DisconnectPolicy = BY_API


@dataclass(frozen=True)
class TurnDraft:
    """A turn being prepared: its ids, its origin, what its input means and what it runs with.

    `needs_log_end` is that of its start. `seen` is what the client has seen with its input, where
    that is known. `meaning` is what its model was named by; where that is a preset, `preset_use` holds its use. `given`
    labels the stored items that the input names. `base_texts` and `dynamic_blocks` are the context about the bases in
    scope and this turn that the model may get, `blocks` the words of its agent and the files of its message.
    `project_base` is what the files of its agent are searched as, where they are too long to be shown. Of a turn that
    has waited, `waited` is the response as it was shown. `charged_to` is as in `Ticket`.
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
    meaning: ResolvedModel
    needs_log_end: bool
    seen: HistoryFingerprint | None
    given: Labels = ()
    preset_use: PresetUse | None = None
    blocks: PlacedBlocks = NO_BLOCKS
    project_base: KnowledgeBaseRef | None = None
    charged_to: str | None = None
    waited: StoredResponse | None = None

    def __post_init__(self) -> None:
        """Check that all files of the input have been read.

        Raises:
            ValueError: one has not.
        """
        check_read(message.content for message in self.read.messages if isinstance(message, UserMessage | ToolMessage))

    @property
    def author(self) -> str | None:
        """Who is named as the author of the input; None in a conversation that is not shared."""
        return self.origin.conversation.people.author_of(self.caller.user_id)

    @property
    def log_length(self) -> int:
        """The length of the log before the turn, including the entries that a fork copies."""
        return self.origin.log[-1].position + 1 if self.origin.log else 0
