"""The tools: what each is called, takes and gives, and the use case that it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from backend.foundation.domain.paging import MAX_LIMIT
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.http.knowledge_shapes import (
    RestrictedBase,
    ShownBase,
    ShownDocument,
    ShownHit,
    show_base,
    show_document,
    show_hit,
)
from backend.knowledge.services.knowledge_documents import MAX_RESULTS, TextPage
from backend.mcp.domain.resource_addresses import ListPlace, address_of
from backend.mcp.services.lookups import BasesFound, BasesSearch, Lookups, ResourcePage
from backend.search.domain.chunks import ChunkHit
from shared.models.safe_summary import ReleasedSummary
from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE, RESTRICTED_PASSED_OVER

MAX_NAMED_BASES = 100
MAX_LOOKUP_QUERY_CHARACTERS = 20_000
"""Retrieval reads no more of a query."""

MAX_PAGE_CHARACTERS = 50_000
DEFAULT_PAGE_CHARACTERS = 20_000
"""Some 5,000 tokens of English text; agents bound the result of one call at some 25,000 tokens."""

_MAX_OFFSET = 2**53

BaseId = Annotated[
    str, Field(description="The id of a knowledge base, `kb_…`, as `list_knowledge_bases` shows it.", max_length=256)
]
After = Annotated[
    str,
    Field(description="The `next_after` of the page before; empty for the first page.", max_length=1024),
]
PageLimit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="How many entries the page holds at most.")]


class Arguments(BaseModel):
    """The base of arguments: no unknown one, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SearchArguments(Arguments):
    """The arguments of `search_knowledge`."""

    query: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_LOOKUP_QUERY_CHARACTERS),
        Field(description="What to look for, in the words and the language of the documents: a question or keywords."),
    ]
    knowledge_base_ids: Annotated[
        list[BaseId],
        Field(
            max_length=MAX_NAMED_BASES,
            description=(
                "The knowledge bases to search; if empty all that the caller may read, and the restricted ones where"
                " those have no answer."
            ),
        ),
    ] = Field(default=[])
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="How many passages to return at most.")] = 10


class ListBasesArguments(Arguments):
    """The arguments of `list_knowledge_bases`."""

    limit: PageLimit = MAX_LIMIT
    after: After = ""


class ListDocumentsArguments(Arguments):
    """The arguments of `list_documents`."""

    knowledge_base_id: BaseId
    limit: PageLimit = MAX_LIMIT
    after: After = ""


class ReadDocumentArguments(Arguments):
    """The arguments of `read_document`."""

    knowledge_base_id: BaseId
    document: Annotated[str, Field(min_length=1, max_length=512, description="The document's name, or its id `doc_…`.")]
    offset: Annotated[
        int, Field(ge=0, le=_MAX_OFFSET, description="Where the page begins, in characters: `next_offset` goes on.")
    ] = 0
    max_characters: Annotated[
        int, Field(ge=1, le=MAX_PAGE_CHARACTERS, description="How many characters the page holds at most.")
    ] = DEFAULT_PAGE_CHARACTERS


class FoundPassage(ShownHit):
    """A found chunk; `uri` is the address of its document as a resource."""

    knowledge_base_id: str
    uri: str


class RestrictedPart(BaseModel):
    """What restricted knowledge bases give: a summary without any passage, or nothing, whatever the cause.

    Those that were not searched, as none was named and others answered, stand here too; `note` says so.
    """

    knowledge_base_ids: list[str]
    summary: ReleasedSummary | None
    note: str


class FoundKnowledge(BaseModel):
    """The passages found, best first, and what restricted knowledge bases give, null where none was searched."""

    results: list[FoundPassage]
    restricted: RestrictedPart | None


class PageOfBases(BaseModel):
    """A page of knowledge bases; `next_after` is empty at the end."""

    knowledge_bases: list[ShownBase | RestrictedBase]
    next_after: str


class ResourceDocument(ShownDocument):
    """A document; `uri` is its address as a resource."""

    uri: str


class PageOfDocuments(BaseModel):
    """A page of documents by name; `next_after` is empty at the end."""

    documents: list[ResourceDocument]
    next_after: str


class DocumentText(BaseModel):
    """A page of a document's text; offsets count characters, and `next_offset` is null at the end."""

    knowledge_base_id: str
    document: str
    file_id: str
    uri: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None


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
        return _as_json(PageOfBases(knowledge_bases=[show_base(binding) for binding in found], next_after=next_after))

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
            "List the knowledge bases that the user may use, with their role in each. `restricted_analyst` means that"
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
        **dict(show_hit(hit)),
        knowledge_base_id=hit.knowledge_base_id,
        uri=address_of(hit.knowledge_base_id, hit.document_name),
    )


def _document(document: Document) -> ResourceDocument:
    return ResourceDocument(**dict(show_document(document)), uri=_uri(document))


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
