"""A turn that is being prepared, step by step, and the operator's settings for all turns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from backend.conversations.domain.attached_files import check_read
from backend.conversations.domain.placed_blocks import PlacedBlocks
from backend.conversations.domain.responses import ConversationSettings, PresetUse, StoredResponse
from backend.conversations.domain.turn_input import ParsedInput
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Labels, join_labels
from backend.openai_api.domain.client_left import BY_API, DisconnectPolicy
from backend.openai_api.domain.presets import Preset, ResolvedModel
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.context_policy import BaseText
from backend.prompt.domain.epochs import Epoch
from backend.turns.domain.image_addresses import NO_PRIVATE_IMAGES, ImageAddresses
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.request.input_files import FilesOfRequest
from shared.models.execution import DynamicBlock, KnowledgeBaseRef
from shared.models.messages import ToolMessage, UserMessage


@dataclass(frozen=True)
class TurnPolicy:
    """The operator's settings for all turns.

    `secret` signs tickets; `replica` names this process. `system_prompt` is the default with which system messages
    open, with placeholders. With `keeps_context` the context about bases and dynamic blocks is logged, and only changes
    are sent again; otherwise all of it is sent in every turn. `drain` is how long turns may run on while this process
    shuts down, None for their whole time. With `strict_requests` what is not known in a request is refused. `images`
    says which addresses of images are passed on. A stream of a restricted turn takes at least `quiet_seconds`.
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
    images: ImageAddresses = NO_PRIVATE_IMAGES
    quiet_seconds: float = 0.0
    on_disconnect: DisconnectPolicy = BY_API


@dataclass(frozen=True)
class AskedTurn:
    """Who asks for a turn, and their request, which names no stored items any more; what those hold is labelled.

    `labels` are those of the items by their ids. `files` are what `InputFiles.separated` has taken out of the request.
    Of a turn that has waited, `waited` is the response as it was shown.
    """

    caller: Caller
    request: TurnRequest
    labels: Mapping[str, Labels] = field(default_factory=dict[str, Labels])
    files: FilesOfRequest = field(default_factory=FilesOfRequest)
    waited: StoredResponse | None = None

    def labels_of(self, rest: TurnRequest) -> Labels:
        """Return the labels of the stored items that are left in an input."""
        if isinstance(rest.input, str):
            return ()
        return join_labels([label for item in rest.input for label in self.labels.get(getattr(item, "id", ""), ())])


class TurnSettings(NamedTuple):
    """What a turn runs with: its model, a preset with its skills, its request with the preset's defaults, its settings.

    `own` are the settings without the preset's. `bindings` are the bases in scope, none until they are looked at.
    """

    meaning: ResolvedModel
    preset: Preset | None
    request: TurnRequest
    own: ConversationSettings
    settings: ConversationSettings
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True)
class TurnDraft:
    """A turn being prepared: who asks for it, where it begins, what it runs with, and what its input means.

    `read` is the input with its files, `base_texts` and `dynamic_blocks` the context about the bases in scope and this
    turn that the model may get, `blocks` the words of its agent and the files of its message. `project_base` is what
    the files of its agent are searched as, where they are too long to be shown.
    """

    policy: TurnPolicy
    asked: AskedTurn
    start: TurnStart
    chosen: TurnSettings
    request_id: str
    response_id: str
    now: datetime
    read: ParsedInput
    base_texts: tuple[BaseText, ...]
    dynamic_blocks: tuple[DynamicBlock, ...]
    epoch: Epoch
    blocks: PlacedBlocks
    project_base: KnowledgeBaseRef | None = None

    def __post_init__(self) -> None:
        """Check that all files of the input have been read.

        Raises:
            ValueError: one has not.
        """
        check_read(message.content for message in self.read.messages if isinstance(message, UserMessage | ToolMessage))

    @property
    def author(self) -> str | None:
        """Who is named as the author of the input; None in a conversation that is not shared."""
        return self.start.origin.conversation.people.author_of(self.asked.caller.user_id)

    @property
    def log_length(self) -> int:
        """The length of the log before the turn, including the entries that a fork copies."""
        log = self.start.origin.log
        return log[-1].position + 1 if log else 0

    @property
    def preset_use(self) -> PresetUse | None:
        """How the turn uses the preset that its model was named by, where one was."""
        meaning, own = self.chosen.meaning, self.chosen.own
        if meaning.preset is None:
            return None
        return PresetUse(
            response_id=self.response_id,
            name=meaning.name,
            own=own,
            agent_id=meaning.preset.id,
            instructions=self.chosen.settings.instructions,
        )
