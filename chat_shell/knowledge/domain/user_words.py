"""The user's own words: the message that a turn answers, and all that a safe summary may repeat."""

from shared.models.execution import ExecutionRequest
from shared.models.messages import Content, UserMessage
from shared.prompts.authors import texts_of_user, words_of_user
from shared.prompts.message_order import read_reminder


def user_words(request: ExecutionRequest) -> str:
    """Return what the user wrote, as the backend says.

    The messages of a request do not tell it: what the application adds has the user's role as well, and earlier turns
    may have been left out. Of a backend that does not say it yet, the current message alone counts.
    """
    return request.knowledge.user_words or "\n".join(words_of_user(request.prompt or ""))


def last_user_message(request: ExecutionRequest) -> str:
    """Return the text of the message that the turn answers, also where it continues from tool results.

    Attached files are no part of it, unless the message is nothing else: a long file would hide what is asked for from
    the pre-screen, which reads the end of a message, and its language would pass for that of the question.
    Whatever follows that message in a history is the model's, a tool's, or a reminder.
    """
    if request.prompt is not None:
        return _text(request.prompt)
    said = (message for message in reversed(request.history) if isinstance(message, UserMessage))
    return _text(next((message.content for message in said if read_reminder(message) is None), None))


def _text(content: Content | None) -> str:
    return "" if content is None else "\n".join(words_of_user(content) or texts_of_user(content))
