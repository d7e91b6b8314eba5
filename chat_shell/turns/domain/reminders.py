"""What the reminder of a model call says: the agent's words, that no tool may be called again, how to cite."""

from collections.abc import Iterable, Sequence

from chat_shell.knowledge.domain.documents import numbers_in
from shared.models.messages import AssistantMessage, Message, TurnMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from shared.prompts.reminders import CITATIONS, LAST_CALL, reminder_text


def reminder_of_call(agents_words: str, added: Sequence[TurnMessage], *, is_last_call: bool) -> str:
    """Return the reminder of a model call; "" where there is nothing to say.

    `added` is what the turn has behind it, also before another process took it over. A turn that has called no tool is
    not told that it may call none: nothing has changed for it.
    """
    last_call = LAST_CALL if is_last_call and _has_called(added) else ""
    citations = CITATIONS if _has_found(added) else ""
    return reminder_text((agents_words, last_call, citations))


def _has_called(messages: Iterable[Message]) -> bool:
    return any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)


def _has_found(messages: Sequence[Message]) -> bool:
    """Whether a knowledge search has brought numbered documents."""
    searches = {
        call.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if call.name == KNOWLEDGE_BASE_SEARCH
    }
    found = (one for one in messages if one.role == "assistant" or (one.role == "tool" and one.call_id in searches))
    return bool(numbers_in(found).documents)
