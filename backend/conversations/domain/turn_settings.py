"""What a turn runs with, and which of it differs from what its conversation ran with so far."""

from backend.conversations.domain.conversation_log import EpochReason
from backend.conversations.domain.responses import Conversation
from backend.knowledge.domain.tickets import SearchOptions
from shared.models.canonical import canonical_parts
from shared.models.execution import ToolDefinition
from shared.models.values import Value
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS


class TurnSettings(Value):
    """The resolved settings of a turn; they stay for the turns that name none."""

    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    knowledge_base_ids: tuple[str, ...]
    search: SearchOptions

    def system_prompt(self, template_version: int) -> str:
        """Return the system message: the same text in every turn of an epoch."""
        section = KNOWLEDGE_SECTIONS[template_version]
        return f"{self.instructions}\n\n{section}" if self.instructions.strip() else section


def changed_setting(conversation: Conversation, settings: TurnSettings) -> EpochReason | None:
    """Say which of a conversation's settings this turn changes, or None; bases may change at any time."""
    if not conversation.model:
        return EpochReason.NEW_CONVERSATION
    if settings.model != conversation.model:
        return EpochReason.MODEL_CHANGED
    # 0 and 0.0, or 1 and true, are equal, and are other bytes in a schema.
    if canonical_parts(settings.functions, ()) != canonical_parts(conversation.functions, ()):
        return EpochReason.TOOLS_CHANGED
    if settings.instructions != conversation.instructions:
        return EpochReason.INSTRUCTIONS_CHANGED
    return None
