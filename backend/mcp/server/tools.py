"""The tools: what each is called, takes and gives, and the use case that it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.http.knowledge_shapes import shown_base, shown_document, shown_hit
from backend.knowledge.services.document_text import TextPage
from backend.mcp.domain.resource_addresses import ListPlace, address_of
from backend.mcp.server.tool_shapes import (
    Arguments,
    DocumentText,
    FoundKnowledge,
    FoundPassage,
    ListBasesArguments,
    ListDocumentsArguments,
    PageOfBases,
    PageOfDocuments,
    ReadDocumentArguments,
    ResourceDocument,
    RestrictedPart,
    SearchArguments,
)
from backend.mcp.services.lookups import BasesFound, BasesSearch, Lookups, ResourcePage
from backend.search.domain.chunks import ChunkHit
from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE, RESTRICTED_PASSED_OVER

Given = TypeVar("Given", bound=Arguments)


class ToolOutcome(NamedTuple):
    """The result of a tool as an object, and as texts for a model."""

    structured: BaseModel
    texts: tuple[str, ...]


class CallerTools:
    """What a caller asks in one request."""

    def __init__(self, lookups: Lookups, caller: Caller, request_id: str) -> None:
        self._lookups = lookups
        self._caller = caller
        self._request_id = request_id

    async def search(self, given: SearchArguments) -> ToolOutcome:
        """Find passages, or a safe summary."""
        search = BasesSearch(given.query, given.knowledge_base_ids or None, given.max_results)
        found = await self._lookups.search(self._caller, search, self._request_id)
        restricted = _describe_restricted(found)
        results = FoundKnowledge(results=[_passage(hit) for hit in found.hits], restricted=restricted)
        # Passages and a released summary never share a text, so that a model cannot take one for the other.
        texts = [_json({"results": results.model_dump(mode="json")["results"]})] if found.read or not restricted else []
        if restricted is not None:
            texts.append(_write_restricted(restricted))
        return ToolOutcome(results, tuple(texts))

    async def list_bases(self, given: ListBasesArguments) -> ToolOutcome:
        """List bases."""
        found, has_more = await self._lookups.bases(self._caller, given.after or None, given.limit)
        next_after = found[-1].base.id if has_more else ""
        return _as_json(PageOfBases(knowledge_bases=[shown_base(binding) for binding in found], next_after=next_after))

    async def list_documents(self, given: ListDocumentsArguments) -> ToolOutcome:
        """List the documents of a base."""
        page = await self._lookups.documents(self._caller, given.knowledge_base_id, given.after or None, given.limit)
        next_after = page.documents[-1].id if page.has_more else ""
        return _as_json(PageOfDocuments(documents=[_document(one) for one in page.documents], next_after=next_after))

    async def read_document(self, given: ReadDocumentArguments) -> ToolOutcome:
        """Read a page of a document."""
        page = await self.text(given.knowledge_base_id, given.document, given.offset, given.max_characters)
        return _as_json(
            DocumentText(
                knowledge_base_id=page.document.knowledge_base_id,
                document=page.document.name,
                file_id=page.document.id,
                uri=_uri(page.document),
                text=page.text,
                offset=page.offset,
                total_characters=page.total_characters,
                next_offset=page.next_offset,
            )
        )

    async def text(self, base_id: str, document: str, offset: int, limit: int) -> TextPage:
        """Return a page of a document's text."""
        return await self._lookups.text(self._caller, base_id, document, offset=offset, limit=limit)

    async def resources(self, after: ListPlace | None) -> ResourcePage:
        """Return a page of all documents."""
        return await self._lookups.resources(self._caller, after)


@dataclass(frozen=True)
class KnowledgeTool:
    """A tool; `run` gets arguments of the class `arguments`."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[BaseModel]
    run: Callable[[CallerTools, Any], Awaitable[ToolOutcome]]


_TOOLS = (
    KnowledgeTool(
        name="search_knowledge",
        title="Search knowledge",
        description=(
            "Find passages in the knowledge bases that the user may use. Each result names its document, its chunk, the"
            " headings above it and a score between 0 and 1, and can be cited by them. Of a knowledge base to which the"
            " user's access is restricted, the answer is a summary at most: it holds no passages, and nothing must be"
            " added to it. Searches of restricted knowledge bases are few a day: without names they are searched only"
            " where no other knowledge base answers."
        ),
        arguments=SearchArguments,
        result=FoundKnowledge,
        run=CallerTools.search,
    ),
    KnowledgeTool(
        name="list_knowledge_bases",
        title="List knowledge bases",
        description=(
            "List the knowledge bases that the user may use, with his role in each. `restricted_analyst` means that"
            " access is restricted: such a knowledge base can be searched for summaries, but its documents cannot be"
            " listed or read. Hint and keywords serve for drafting queries."
        ),
        arguments=ListBasesArguments,
        result=PageOfBases,
        run=CallerTools.list_bases,
    ),
    KnowledgeTool(
        name="list_documents",
        title="List documents",
        description="List the documents of a knowledge base by name, in pages.",
        arguments=ListDocumentsArguments,
        result=PageOfDocuments,
        run=CallerTools.list_documents,
    ),
    KnowledgeTool(
        name="read_document",
        title="Read a document",
        description=(
            "Read a page of a document's text. Where `next_offset` is not null, the text goes on there: call again with"
            " it as `offset`."
        ),
        arguments=ReadDocumentArguments,
        result=DocumentText,
        run=CallerTools.read_document,
    ),
)
TOOLS: Mapping[str, KnowledgeTool] = {tool.name: tool for tool in _TOOLS}


def _passage(hit: ChunkHit) -> FoundPassage:
    return FoundPassage(
        **dict(shown_hit(hit)),
        knowledge_base_id=hit.knowledge_base_id,
        uri=address_of(hit.knowledge_base_id, hit.document_name),
    )


def _document(document: Document) -> ResourceDocument:
    return ResourceDocument(**dict(shown_document(document)), uri=_uri(document))


def _uri(document: Document) -> str:
    return address_of(document.knowledge_base_id, document.name)


def _describe_restricted(found: BasesFound) -> RestrictedPart | None:
    if found.passed_over:
        ids = [binding.base.id for binding in found.passed_over]
        return RestrictedPart(knowledge_base_ids=ids, summary=None, note=RESTRICTED_PASSED_OVER + ", ".join(ids))
    if not found.restricted:
        return None
    return RestrictedPart(
        knowledge_base_ids=[binding.base.id for binding in found.restricted],
        summary=found.summary,
        note=CANNOT_ANSWER if found.summary is None else RELEASED_NOTE,
    )


def _write_restricted(part: RestrictedPart) -> str:
    return part.note if part.summary is None else f"{_json(part.summary.model_dump(mode='json'))}\n\n{part.note}"


def _as_json(structured: BaseModel) -> ToolOutcome:
    return ToolOutcome(structured, (_json(structured.model_dump(mode="json")),))


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
