"""The use cases of conversations, as one value for the application and the HTTP door."""

from dataclasses import dataclass

from backend.conversations.services.conversations import CallerConversations
from backend.conversations.services.read_prompts import ReadPrompts
from backend.conversations.services.withheld_turns import WithheldText


@dataclass(frozen=True)
class ConversationServices:
    """What the routes of conversations call."""

    conversations: CallerConversations
    prompts: ReadPrompts
    withheld: WithheldText
