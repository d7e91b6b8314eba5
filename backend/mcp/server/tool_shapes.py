"""The arguments and results of the tools, as pydantic models from which their JSON schemas are made."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from backend.foundation.domain.paging import MAX_LIMIT
from backend.knowledge.http.knowledge_shapes import RestrictedBase, ShownBase, ShownDocument, ShownHit
from backend.knowledge.services.search_knowledge import MAX_RESULTS
from shared.models.safe_summary import ReleasedSummary

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
