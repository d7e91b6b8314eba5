"""Documents as a model sees them: JSON objects, numbered consecutively through the whole conversation."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chat_shell.knowledge.domain.citations import CitedDocument
from chat_shell.tools.domain.tool_answers import FoundDocument
from shared.models.events import SearchResult
from shared.models.messages import AssistantMessage, Message, ToolMessage, UserMessage
from shared.prompts.documents import (
    RENDERED_START,
    DocumentHead,
    NumberedDocument,
    document_heads,
    encode_documents,
)
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_READ_DOCUMENT, KNOWLEDGE_BASE_SEARCH
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.prompts.project_files import project_documents
from shared.prompts.read_file import READ_FILE
from shared.prompts.summary import is_left_out_mark

DOCUMENT_TOOLS = frozenset({KNOWLEDGE_BASE_SEARCH, KNOWLEDGE_BASE_READ_DOCUMENT, READ_FILE})

_CITED = re.compile(r"[\[【,] ?([1-9][0-9]{0,2})(?= ?[\]】,])")
"""A number in `[1]`, `[1, 2]` or 【1】; those of four digits are more likely years than documents."""


@dataclass(frozen=True, slots=True)
class NumberedDocuments:
    """Numbered documents: as text for the model, and as search results for events."""

    text: str
    results: tuple[SearchResult, ...]


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """The documents numbered so far in a conversation; new numbers are greater than `highest` and than all of these."""

    documents: Mapping[int, CitedDocument] = field(default_factory=dict[int, CitedDocument])
    highest: int = 0

    def number(self, found: Sequence[FoundDocument]) -> tuple[NumberedDocuments, "DocumentNumbers"]:
        """Number documents onward from the highest number so far."""
        first = max(self.highest, *self.documents, 0) + 1
        numbered = tuple(enumerate(found, start=first))
        known = {number: CitedDocument(one.file_id, one.title, one.place, one.other_names) for number, one in numbered}
        return (
            NumberedDocuments(render_documents(numbered), tuple(_result(number, one) for number, one in numbered)),
            DocumentNumbers({**self.documents, **known}, self.highest),
        )

    def without_documents(self) -> "DocumentNumbers":
        """Forget the documents, so that none of them can be cited, but continue their numbers."""
        return DocumentNumbers(highest=max(self.highest, *self.documents, 0))

    def join(self, later: "DocumentNumbers") -> "DocumentNumbers":
        """Add documents that were numbered later in the conversation."""
        return DocumentNumbers({**self.documents, **later.documents}, max(self.highest, later.highest))


def render_documents(numbered: Iterable[tuple[int, FoundDocument]]) -> str:
    """Render documents as JSON text."""
    return encode_documents(
        NumberedDocument(number, one.title, one.file_id, one.metadata, one.content, one.place, one.other_names)
        for number, one in numbered
    )


def numbers_in(messages: Iterable[Message]) -> DocumentNumbers:
    """Read the numbered documents from the files of an agent and from the results of our tools.

    Results of the client's functions are ignored. A user who writes a message like that about an agent's files gains
    citations of what they have written. Of results that were elided, or are left out with an earlier part of the
    conversation, only the numbers are known that answers and summaries still cite: a later document gets none of these,
    because the model reads them as they were meant.
    """
    messages = tuple(messages)
    known: dict[int, CitedDocument] = {}
    ours: set[str] = set()
    marks = [text for text in map(_find_left_out_mark, messages) if text]
    is_elided, cited = bool(marks), max((number for text in marks for number in _find_cited(text)), default=0)
    for message in messages:
        if isinstance(message, AssistantMessage):
            ours = {call.call_id for call in message.tool_calls if call.name in DOCUMENT_TOOLS}
            cited = max(cited, *_find_cited(message.text), 0) if is_elided else cited
        elif isinstance(message, ToolMessage) and message.call_id in ours and isinstance(message.content, str):
            known.update(_documents_by_number(_documents_in(message.content)))
            is_elided = is_elided or message.content == TOOL_RESULT_ELIDED
        elif isinstance(message, UserMessage) and isinstance(message.content, str):
            known.update(_documents_by_number(project_documents(message.content)))
    return DocumentNumbers(known, cited)


def _find_left_out_mark(message: Message) -> str:
    """Return the text of a message that stands for an earlier part of the conversation; "" for any other."""
    content = message.content if isinstance(message, UserMessage) else ""
    return content if isinstance(content, str) and is_left_out_mark(content) else ""


def _find_cited(text: str) -> Iterator[int]:
    return (int(number) for number in _CITED.findall(text))


def _result(number: int, document: FoundDocument) -> SearchResult:
    return SearchResult(
        number=number,
        file_id=document.file_id,
        filename=document.title,
        score=document.score,
        text=document.content,
        attributes=document.attributes,
        place=document.place,
        other_names=document.other_names,
    )


def _documents_in(text: str) -> Iterable[DocumentHead]:
    """Return the documents of a result; one of another shape, which a caller may have written, is ignored."""
    return document_heads(text) if text.startswith(RENDERED_START) else ()


def _documents_by_number(heads: Iterable[DocumentHead]) -> dict[int, CitedDocument]:
    return {head.number: CitedDocument(head.file_id, head.title, head.place, head.other_names) for head in heads}
