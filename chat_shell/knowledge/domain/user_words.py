"""The text that the user has written, which is the only text that a safe summary may repeat."""

from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.prompts.message_order import texts_of_user

MAX_CHARACTERS = 20_000
"""The maximum length of the text; only the newest characters are used."""


def user_words(request: ExecutionRequest) -> str:
    """Return the text of all user messages of a turn, the current one last."""
    return "\n".join(_texts(request))[-MAX_CHARACTERS:]


def last_user_message(request: ExecutionRequest) -> str:
    """Return the text of the message that the turn answers, also where it continues from tool results."""
    return next(reversed(_texts(request)), "")


def _texts(request: ExecutionRequest) -> list[str]:
    said = [message.content for message in request.history if isinstance(message, UserMessage)]
    return ["\n".join(texts_of_user(content)) for content in (*said, request.prompt) if content is not None]
