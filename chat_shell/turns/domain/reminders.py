"""What the reminder of a model call says: the agent's words, that no tool may be called again, how to cite."""

from collections.abc import Iterable, Sequence

from chat_shell.knowledge.domain.documents import numbers_in
from shared.models.messages import AssistantMessage, Message, TurnMessage
from shared.prompts.reminders import CITATIONS, LAST_CALL, reminder_text


def reminder_of_call(agents_words: str, added: Sequence[TurnMessage], *, is_last_call: bool) -> str:
    """Return the reminder of a model call; "" where there is nothing to say.

    `added` is what the turn has behind it, also before another process took it over. A turn that has called no tool is
    not told that it may call none: nothing has changed for it. It is told how to cite once a tool has brought numbered
    documents: no other message says so.
    """
    last_call = LAST_CALL if is_last_call and _has_called(added) else ""
    citations = CITATIONS if numbers_in(added).documents else ""
    return reminder_text((agents_words, last_call, citations))


def _has_called(messages: Iterable[Message]) -> bool:
    return any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
