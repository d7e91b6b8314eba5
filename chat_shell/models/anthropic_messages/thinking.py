"""The effort of thinking of Anthropic's models: OpenAI's efforts in the words of the Messages API."""

from collections.abc import Sequence
from enum import StrEnum

from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.kept_items import pieces_of
from shared.models.execution import NamedToolChoice, ReasoningEffort
from shared.models.messages import AssistantMessage, Message, OpaqueItem, UserMessage
from shared.models.values import JsonObject
from shared.prompts.message_order import read_reminder

ANTHROPIC_MESSAGES = "anthropic_messages"
MIN_BUDGET_TOKENS = 1_024
"""The API's smallest budget; a budget must also be below `max_tokens`."""

OFF: JsonObject = {"type": "disabled"}
_BUDGET_PERCENT = {
    ReasoningEffort.MINIMAL: 10,
    ReasoningEffort.LOW: 20,
    ReasoningEffort.MEDIUM: 50,
    ReasoningEffort.HIGH: 80,
    ReasoningEffort.XHIGH: 90,
    ReasoningEffort.MAX: 95,
}
"""The part of `max_tokens` that thinking may take; the rest is left for the answer."""


class ThinkingMode(StrEnum):
    """How a model is told to think: by an effort (Claude 4.6 and later), or by a number of tokens (earlier ones)."""

    ADAPTIVE = "adaptive"
    BUDGET = "budget"


def encode_thinking(call: ModelCall, mode: ThinkingMode, max_tokens: int, *, sends_thinking: bool) -> JsonObject:
    """Return the field `thinking` and the effort; nothing where the caller has named no effort.

    Thinking is off where the API refuses it: with a tool that must be called, and, in the mode `budget`, where the
    answer that waits for its results was given without.
    """
    effort = call.parameters.reasoning_effort
    if effort is None:
        return {} if sends_thinking else {"thinking": OFF}
    is_forced = call.parameters.tool_choice == "required" or isinstance(call.parameters.tool_choice, NamedToolChoice)
    if effort is ReasoningEffort.NONE or (is_forced and call.tools) or not sends_thinking:
        return {"thinking": OFF}
    if mode is ThinkingMode.ADAPTIVE:
        named = ReasoningEffort.LOW if effort is ReasoningEffort.MINIMAL else effort
        return {"thinking": {"type": "adaptive"}, "effort": named.value}
    budget = max(MIN_BUDGET_TOKENS, max_tokens * _BUDGET_PERCENT[effort] // 100)
    if budget >= max_tokens or not _has_thought(call.messages):
        return {"thinking": OFF}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _has_thought(messages: Sequence[Message]) -> bool:
    """Whether the newest answer, if it waits for its results to be read, began with thinking."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) and read_reminder(message) is None:
            return True
        if isinstance(message, AssistantMessage):
            return isinstance(next(pieces_of(message, ANTHROPIC_MESSAGES), None), OpaqueItem)
    return True
