"""The numbers of documents in a conversation, as its log shows them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind
from shared.prompts.documents import RENDERED_START, document_heads


class ShownProject(NamedTuple):
    """The newest message about an agent's files that shows some: its text, and the number of the first of them."""

    text: str
    number: int


def first_shown_number(log: Sequence[Entry]) -> ShownProject | None:
    """Return the newest message of a log that shows files of an agent; None where there is none."""
    for entry in reversed(log):
        text = _text_of(entry) if entry.kind is EntryKind.PROJECT_FILES else ""
        head = next(document_heads(text), None)
        if head is not None:
            return ShownProject(text, head.number)
    return None


def next_number(log: Sequence[Entry]) -> int:
    """Return the number behind the highest that the log has given; 1 where it has given none."""
    return max((number for entry in log for number in _numbers_in(entry)), default=0) + 1


def _numbers_in(entry: Entry) -> Iterator[int]:
    if entry.kind in (EntryKind.PROJECT_FILES, EntryKind.TOOL_RESULT):
        text = _text_of(entry)
        if RENDERED_START in text:
            yield from (head.number for head in document_heads(text))


def _text_of(entry: Entry) -> str:
    content = getattr(entry.message, "content", "")
    return content if isinstance(content, str) else ""
