"""Documents as a model sees them: JSON objects, numbered through the whole conversation."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from chat_shell.domain.citations import CitedDocument
from shared.models.events import SearchResult
from shared.models.messages import AssistantMessage, Message, ToolMessage
from shared.models.values import Value
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_READ_DOCUMENT, KNOWLEDGE_BASE_SEARCH

DOCUMENT_TOOLS = frozenset({KNOWLEDGE_BASE_SEARCH, KNOWLEDGE_BASE_READ_DOCUMENT})

MAX_NUMBER = 999_999_999

_RENDERED_START = '{"documents"'
_JSON = json.JSONDecoder()


class FoundDocument(Value):
    """A piece of text that a tool found, not yet numbered; `metadata` is shown in its own order."""

    file_id: str
    title: str
    metadata: dict[str, Any]
    content: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Numbered:
    """Documents with their numbers: as text for the model, and as hits for who watches."""

    text: str
    results: tuple[SearchResult, ...]


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """The numbers given so far in a conversation and what each stands for."""

    documents: Mapping[int, CitedDocument] = field(default_factory=dict[int, CitedDocument])

    def number(self, found: Sequence[FoundDocument]) -> tuple[Numbered, "DocumentNumbers"]:
        """Number documents onward from the highest number so far."""
        first = max(self.documents, default=0) + 1
        numbered = tuple(enumerate(found, start=first))
        known = {number: CitedDocument(file_id=one.file_id, filename=one.title) for number, one in numbered}
        return (
            Numbered(render_documents(numbered), tuple(_result(number, one) for number, one in numbered)),
            DocumentNumbers({**self.documents, **known}),
        )


def render_documents(numbered: Iterable[tuple[int, FoundDocument]]) -> str:
    """Render documents as JSON text: the number first, the content last, the same bytes for the same values."""
    documents = [
        {"document": number, "title": one.title, "file_id": one.file_id, **one.metadata, "content": one.content}
        for number, one in numbered
    ]
    return json.dumps({"documents": documents}, ensure_ascii=False)


def numbers_in(messages: Iterable[Message]) -> DocumentNumbers:
    """Read from the log which numbers our tools have given; results of the client's functions do not count."""
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
    )


class _RenderedDocument(BaseModel):
    document: int = Field(ge=1, le=MAX_NUMBER)
    file_id: str
    title: str


class _RenderedDocuments(BaseModel):
    documents: tuple[_RenderedDocument, ...]


def _documents_in(text: str) -> Iterator[tuple[int, CitedDocument]]:
    """Yield the documents of a rendered result; a warning may stand behind the JSON.

    A caller may have written the history himself: what has another shape names no documents.
    """
    if not text.startswith(_RENDERED_START):
        return
    try:
        decoded, _ = _JSON.raw_decode(text)
        rendered = _RenderedDocuments.model_validate(decoded)
    except (ValueError, RecursionError):
        return
    for one in rendered.documents:
        yield one.document, CitedDocument(file_id=one.file_id, filename=one.title)
