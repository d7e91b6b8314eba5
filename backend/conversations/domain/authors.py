"""Naming the author of what a user gives to a conversation that several people use."""

from collections.abc import Sequence
from dataclasses import replace

from backend.conversations.domain.responses import ItemBody
from backend.conversations.domain.turn_input import ParsedInput
from shared.models.messages import Content, HistoryMessage, UserMessage
from shared.prompts.authors import with_author, without_marks
from shared.prompts.summary import is_left_out_mark


def add_author(read: ParsedInput, author: str | None) -> ParsedInput:
    """Return an input whose messages of the user name their author; without one they only cannot pretend to.

    What somebody else said in the history that a user gives counts as said by the user.
    """
    current = None if read.current is None else _add_author_to_content(read.current, author)
    return replace(read, history=tuple(_add_author_to_message(each, author) for each in read.history), current=current)


def add_author_to_bodies(bodies: Sequence[ItemBody], author: str | None) -> tuple[ItemBody, ...]:
    """Return items in which the messages of the user show their author to clients."""
    if author is None:
        return tuple(bodies)
    return tuple({**body, "author": author} if body.get("role") == "user" else body for body in bodies)


def _add_author_to_message(message: HistoryMessage, author: str | None) -> HistoryMessage:
    if not isinstance(message, UserMessage):
        return message
    content = _add_author_to_content(message.content, author)
    return message if content == message.content else UserMessage(content=content)


def _add_author_to_content(content: Content, author: str | None) -> Content:
    escaped = without_marks(content)
    return escaped if author is None or is_left_out_mark(escaped) else with_author(escaped, author)
