"""Documents as a model sees them: JSON objects, numbered consecutively through the whole conversation."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chat_shell.knowledge.domain.citations import CitedDocument
from chat_shell.tools.domain.tool_answers import FoundDocument
from shared.models.events import SearchResult
from shared.models.messages import AssistantMessage, Message, ToolMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_READ_DOCUMENT, KNOWLEDGE_BASE_SEARCH

DOCUMENT_TOOLS = frozenset({KNOWLEDGE_BASE_SEARCH, KNOWLEDGE_BASE_READ_DOCUMENT})

_RENDERED_START = '{"documents"'
_JSON_STRING = r'("(?:[^"\\]|\\.)*")'
_DOCUMENT_HEAD = re.compile(rf'{{"document": ([1-9]\d{{0,8}}), "title": {_JSON_STRING}, "file_id": {_JSON_STRING}')


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
        known = {number: CitedDocument(file_id=one.file_id, filename=one.title) for number, one in numbered}
        return (
            NumberedDocuments(render_documents(numbered), tuple(_result(number, one) for number, one in numbered)),
            DocumentNumbers({**self.documents, **known}, self.highest),
        )

    def without_documents(self) -> "DocumentNumbers":
        """Forget the documents, so that none of them can be cited, but continue their numbers."""
        return DocumentNumbers(highest=max(self.highest, *self.documents, 0))

    def joined(self, later: "DocumentNumbers") -> "DocumentNumbers":
        """Add documents that were numbered later in the conversation."""
        return DocumentNumbers({**self.documents, **later.documents}, max(self.highest, later.highest))


def render_documents(numbered: Iterable[tuple[int, FoundDocument]]) -> str:
    """Render documents as JSON text: the number first, the content last, the same bytes for the same values."""
    documents = [
        {"document": number, "title": one.title, "file_id": one.file_id, **one.metadata, "content": one.content}
        for number, one in numbered
    ]
    return json.dumps({"documents": documents}, ensure_ascii=False)


def numbers_in(messages: Iterable[Message]) -> DocumentNumbers:
    """Read the numbered documents from the results of our tools; results of the client's functions are ignored."""
    known: dict[int, CitedDocument] = {}
    ours: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            ours = {call.call_id for call in message.tool_calls if call.name in DOCUMENT_TOOLS}
        elif isinstance(message, ToolMessage) and message.call_id in ours and isinstance(message.content, str):
            known.update(_documents_in(message.content))
    return DocumentNumbers(known)


def _result(number: int, document: FoundDocument) -> SearchResult:
    return SearchResult(
        number=number,
        file_id=document.file_id,
        filename=document.title,
        score=document.score,
        text=document.content,
        attributes=document.attributes,
    )


def _documents_in(text: str) -> Iterator[tuple[int, CitedDocument]]:
    """Yield the documents of a rendered result, without decoding their contents.

    Inside a JSON string every quotation mark is escaped, so the head of a document is found nowhere else.
    Results of another shape, which a caller may have written into the history, are ignored.
    """
    if not text.startswith(_RENDERED_START):
        return
    for head in _DOCUMENT_HEAD.finditer(text):
        number, title, file_id = head.groups()
        try:
            document = CitedDocument(file_id=_decode(file_id), filename=_decode(title))
        except ValueError:
            continue
        yield int(number), document


def _decode(json_string: str) -> str:
    """Decode a JSON string.

    Raises:
        ValueError: it contains an invalid escape, or half of a surrogate pair.
    """
    text: str = json.loads(json_string) if "\\" in json_string else json_string[1:-1]
    text.encode()
    return text
