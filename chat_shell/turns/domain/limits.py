"""Limits of a turn: knowledge calls, and the share of the model's window that results may fill."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shared.models.events import ModelCard
from shared.models.messages import AssistantMessage, Message
from shared.prompts.knowledge_base import BUDGET_EXHAUSTED, BUDGET_WARNING, CALL_LIMIT_REACHED
from shared.prompts.knowledge_tools import KNOWLEDGE_TOOLS
from shared.tokens import estimate_tokens

WARNING_PERCENT = 70
REFUSAL_PERCENT = 90


@dataclass(frozen=True, slots=True)
class KnowledgeAllowance:
    """What knowledge tools may still use; `used_tokens` counts the whole prompt of the next request."""

    calls_left: int
    budget_tokens: int
    used_tokens: int

    def refusal(self) -> str | None:
        """Say why no further call may be made, or None when one may."""
        if self.is_exhausted:
            return BUDGET_EXHAUSTED
        return CALL_LIMIT_REACHED if self.calls_left <= 0 else None

    @property
    def is_exhausted(self) -> bool:
        """Whether the prompt leaves no room for a further result."""
        return self.used_tokens * 100 >= self.budget_tokens * REFUSAL_PERCENT

    def has_room_for(self, text: str) -> bool:
        """Whether a result still goes into the prompt."""
        return not self.is_exhausted and self.after_text(text).used_tokens <= self.budget_tokens

    def after_call(self) -> "KnowledgeAllowance":
        """Count one call."""
        return replace(self, calls_left=self.calls_left - 1)

    def after_text(self, text: str) -> "KnowledgeAllowance":
        """Count a result that goes into the prompt."""
        return replace(self, used_tokens=self.used_tokens + estimate_tokens(text))

    def with_warning(self, text: str) -> str:
        """Add the warning to a knowledge result that brings the prompt near its budget."""
        used = self.after_text(text).used_tokens
        return f"{text}\n\n{BUDGET_WARNING}" if used * 100 >= self.budget_tokens * WARNING_PERCENT else text


def knowledge_calls_in(messages: Iterable[Message]) -> int:
    """Count the calls of knowledge tools that a turn has behind it."""
    said = [message for message in messages if isinstance(message, AssistantMessage)]
    return sum(call.name in KNOWLEDGE_TOOLS for message in said for call in message.tool_calls)


def result_tokens(card: ModelCard, most_tokens: int) -> int:
    """Return how long a tool's result may be: never more than half of the window."""
    return min(most_tokens, card.context_window_tokens // 2)
