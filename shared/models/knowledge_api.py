"""The internal API of knowledge: what chat_shell asks with the ticket of a turn, and what the backend answers.

A request holds no unknown field and converts nothing; of an answer unknown fields are passed over.
"""

from collections.abc import Sequence
from operator import not_
from typing import Annotated, cast

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from shared.models.execution import AccessMode
from shared.models.safe_summary import (
    LEAST_SUPPORT,
    MAX_LIST_ITEMS,
    AnswerReason,
    Decision,
    Failure,
    GateBlock,
    GateCode,
    PolicyRefusal,
    ReleasedSummary,
    SummaryVersions,
)
from shared.models.values import AttributeValue, Place, Value

KNOWLEDGE_PATH = "/internal/v1/knowledge"
MAX_HITS = 100
MAX_PAGE_CHARACTERS = 200_000
MAX_SEALED_CHUNKS = 24
MAX_LATENCY_MS = 86_400_000
MAX_CANARY_HITS = 10_000
MAX_REWRITES = 1
MAX_FACTS = 5_000

_Chunks = Annotated[int, Field(ge=0, le=MAX_SEALED_CHUNKS)]
_FROM_STRING = Field(strict=False)
_Code = Annotated[GateCode, _FROM_STRING]
_Reason = (
    Annotated[AnswerReason, _FROM_STRING]
    | Annotated[PolicyRefusal, _FROM_STRING]
    | Annotated[Failure, _FROM_STRING]
    | Annotated[GateBlock, _FROM_STRING]
)


class TicketRequest(BaseModel):
    """A request by the ticket of a turn."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ticket: str


def body_of(asked: TicketRequest) -> bytes:
    """Write a request, without what it leaves to the defaults."""
    return orjson.dumps(asked.model_dump(mode="json", exclude_unset=True))


class SearchByTicket(TicketRequest):
    """A search; without `knowledge_base_ids` in all bases of the ticket. Only the sealed room sets `sealed`."""

    query: str
    knowledge_base_ids: list[str] = Field(default=[])
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    whole_below_tokens: Annotated[int, Field(ge=0)] = 0
    sealed: SummaryVersions | None = None


class DocumentsByTicket(TicketRequest):
    """A listing; without `knowledge_base_ids` of all bases of the ticket."""

    knowledge_base_ids: list[str] = Field(default=[])


class ReadByTicket(TicketRequest):
    """A range of a document's text, in characters."""

    file_id: str
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_CHARACTERS)] = MAX_PAGE_CHARACTERS


class ToldFact(Value):
    """A sentence of a document, by a keyed digest of it."""

    document_id: Annotated[str, Field(max_length=64)]
    digest: Annotated[str, Field(max_length=64)]


class ReportedOutcome(TicketRequest):
    """The outcome of a search in the sealed room; `search_id` is null for a request refused before any search.

    `facts` are those that the backend has found in what is released; null where nothing was weighed.
    """

    policy_version: Annotated[str, Field(min_length=1, max_length=64)]
    gate_version: Annotated[str, Field(min_length=1, max_length=64)]
    prompt_version: Annotated[str, Field(min_length=1, max_length=64)]
    model: Annotated[str, Field(min_length=1, max_length=256)]
    search_id: Annotated[str, Field(max_length=64)] | None
    knowledge_base_ids: list[str]
    decision: Annotated[Decision, _FROM_STRING]
    reason: _Reason
    gate_codes: Annotated[list[_Code], Field(max_length=2 * len(GateCode))]
    rewrites: Annotated[int, Field(ge=0, le=MAX_REWRITES)]
    latency_ms: Annotated[int, Field(ge=0, le=MAX_LATENCY_MS)]
    chunks_found: _Chunks
    chunks_sent: _Chunks
    canary_hits: Annotated[int, Field(ge=0, le=MAX_CANARY_HITS)]
    is_open_ask: bool = False
    released: ReleasedSummary | None
    facts: Annotated[list[ToldFact], Field(max_length=MAX_FACTS)] | None = None


class WeighByTicket(TicketRequest):
    """What the gate would release of a search, to be compared by its meaning with what the search was shown."""

    search_id: Annotated[str, Field(max_length=64)]
    texts: Annotated[list[str], Field(max_length=1 + 3 * MAX_LIST_ITEMS)]


class WeighedAnswer(BaseModel):
    """What texts tell of the source: `facts` are its sentences of which they tell something.

    `retold` are their own sentences that say what one of it says; these may not leave.
    """

    retold: tuple[str, ...]
    facts: tuple[ToldFact, ...]


class KnowledgeChunk(Value):
    """A chunk as the knowledge tool shows it."""

    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: tuple[str, ...]
    text: str
    score: float
    attributes: dict[str, AttributeValue] = Field(default={})
    place: Place | None = Field(default=None, exclude_if=not_)
    other_names: tuple[str, ...] = Field(default=(), exclude_if=not_)


class SearchAnswer(BaseModel):
    """The chunks that a search found; of a restricted search only the mode."""

    access_mode: AccessMode
    whole: bool = False
    data: tuple[KnowledgeChunk, ...] = ()


class ProtectedChunkShape(BaseModel):
    """A chunk for the secondary model; `canary` is its document's. No `repr` shows text of a document."""

    knowledge_base_id: str
    chunk_id: str
    document: str = Field(repr=False)
    heading_path: tuple[str, ...] = Field(repr=False)
    ordinal: int
    text: str = Field(repr=False)
    canary: str = Field(repr=False)


def _ids_or_none(given: object) -> Sequence[object]:
    ids = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    return ids if all(isinstance(one, str) for one in ids) else ()


class StrictPart(BaseModel):
    """The chunks and siblings of a search that a base with the grade `strict` takes part in.

    `areas` are the owners' keywords, as far as their restricted members are shown them. Nothing of this stands where
    prose is made from chunks: a chat_shell that does not know the grade finds none.
    """

    areas: tuple[str, ...]
    chunks: tuple[ProtectedChunkShape, ...]
    siblings: tuple[ProtectedChunkShape, ...]


class SealedPart(BaseModel):
    """A refusal, or the earlier released result, or chunks and how often their model repeated canaries of late.

    `siblings` are other chunks of the same documents, for the gate alone. `restricted_translation` are the ids of the
    searched bases whose owners allow that their text is summarised in another language; where it is missing or has
    another form, none does. `support` is the number of documents in which a word must stand to say nothing of one of
    them, and `has_records` tells that a base holds records. `is_weighed`: prose has to be
    weighed before it is reported.
    """

    search_id: str
    refusal: Failure | None
    released: ReleasedSummary | None
    chunks: tuple[ProtectedChunkShape, ...]
    siblings: tuple[ProtectedChunkShape, ...] = ()
    canary_replies: int
    restricted_translation: Annotated[tuple[str, ...], BeforeValidator(_ids_or_none)] = ()
    strict: StrictPart | None = None
    support: Annotated[int, Field(ge=1)] = LEAST_SUPPORT
    has_records: bool = False
    is_weighed: bool = False


class SealedSearchAnswer(SearchAnswer):
    """The answer to the sealed room: `data` is always empty, and `sealed` holds the chunks."""

    sealed: SealedPart


class OutcomeAnswer(BaseModel):
    """The outcome is on record; `reason` may differ from the reported one."""

    recorded: bool
    release: bool
    reason: str


class KnowledgeDocument(Value):
    """An entry in a list of documents: a document by name and size."""

    knowledge_base_id: str
    file_id: str
    filename: str
    size_bytes: int
    chunk_count: int


class DocumentsAnswer(BaseModel):
    """Documents by base and name."""

    data: tuple[KnowledgeDocument, ...]


class KnowledgePage(Value):
    """A part of a document's text; `next_offset` is None at the end of the document. Offsets count characters."""

    file_id: str
    filename: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None
