"""Routes for chat_shell: retrieval by ticket. Not for users, so not in the OpenAPI document."""

import hmac
from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel, Field

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import OptionsDep, service_of
from backend.foundation.http.shapes import RequestBody
from backend.identity.http.caller import BearerDep
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.services.document_text import TextPage
from backend.restricted.domain.restricted import SearchRequest
from backend.restricted.http.sealed_shapes import OutcomeAnswer, ReportedOutcome, SealedPart, sealed_part
from backend.restricted.services.use_cases import RestrictedServices
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Attributes
from shared.certificates import HAS_CERTIFICATE
from shared.errors import Unauthenticated
from shared.models.execution import AccessMode
from shared.models.safe_summary import SummaryVersions

MAX_HITS = 100
MAX_PAGE_CHARACTERS = 200_000


async def _service_token(request: Request, options: OptionsDep, credentials: BearerDep) -> None:
    if options.needs_certificate and not request.scope["state"].get(HAS_CERTIFICATE):
        raise Unauthenticated("Connections of services need a client certificate here.")
    presented = credentials.credentials if credentials else ""
    is_known = hmac.compare_digest(presented.encode(), options.service_token.encode())
    if not options.service_token or not is_known:
        raise Unauthenticated("The service token is not valid.")


ServicesDep = Annotated[RestrictedServices, Depends(service_of(RestrictedServices))]
router = new_router("Internal")
router.include_in_schema = False
router.dependencies.append(Depends(_service_token))


class SearchByTicket(RequestBody):
    """A search; without `knowledge_base_ids` in all bases of the ticket. Only the sealed room sets `sealed`."""

    ticket: str
    query: str
    knowledge_base_ids: list[str] = Field(default=[])
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    whole_below_tokens: Annotated[int, Field(ge=0)] = 0
    sealed: SummaryVersions | None = None


class DocumentsByTicket(RequestBody):
    """A listing; without `knowledge_base_ids` of all bases of the ticket."""

    ticket: str
    knowledge_base_ids: list[str] = Field(default=[])


class ReadByTicket(RequestBody):
    """A range of a document's text, in characters."""

    ticket: str
    file_id: str
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_CHARACTERS)] = MAX_PAGE_CHARACTERS


class FoundChunk(BaseModel):
    """A chunk as the knowledge tool shows it."""

    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: list[str]
    text: str
    score: float
    attributes: Attributes


class SearchAnswer(BaseModel):
    """The chunks that a search found; of a restricted search only the mode."""

    access_mode: AccessMode
    whole: bool
    data: list[FoundChunk]


class SealedSearchAnswer(SearchAnswer):
    """The answer to the sealed room: `data` is always empty, and `sealed` holds the chunks."""

    sealed: SealedPart


class ListedDocument(BaseModel):
    """A document by name and size."""

    knowledge_base_id: str
    file_id: str
    filename: str
    size_bytes: int
    chunk_count: int


class DocumentsAnswer(BaseModel):
    """Documents by base and name."""

    data: list[ListedDocument]


class PageAnswer(BaseModel):
    """A page of a document's text."""

    file_id: str
    filename: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None


@router.post("/internal/v1/knowledge/search")
async def search_by_ticket(body: SearchByTicket, services: ServicesDep) -> SealedSearchAnswer | SearchAnswer:
    """Search the ticket's bases."""
    request = SearchRequest(body.query, tuple(body.knowledge_base_ids), body.limit, body.whole_below_tokens)
    if body.sealed is not None:
        answer = await services.searches.search(body.ticket, request, body.sealed)
        return SealedSearchAnswer(
            access_mode=AccessMode.RESTRICTED, whole=answer.whole, data=[], sealed=sealed_part(answer)
        )
    result = await services.ticketed.search(body.ticket, request)
    return SearchAnswer(access_mode=result.access_mode, whole=result.whole, data=[_found(hit) for hit in result.hits])


@router.post("/internal/v1/knowledge/outcomes")
async def report_outcome(body: ReportedOutcome, services: ServicesDep) -> OutcomeAnswer:
    """Record the outcome of a sealed search; a summary is released only after that."""
    verdict = await services.outcomes.report(body.ticket, body.as_outcome())
    return OutcomeAnswer(release=verdict.release, reason=verdict.reason)


@router.post("/internal/v1/knowledge/documents")
async def documents_by_ticket(body: DocumentsByTicket, services: ServicesDep) -> DocumentsAnswer:
    """List the documents of the ticket's bases."""
    documents = await services.ticketed.documents(body.ticket, body.knowledge_base_ids)
    return DocumentsAnswer(data=[_listed(document) for document in documents])


@router.post("/internal/v1/knowledge/read")
async def read_by_ticket(body: ReadByTicket, services: ServicesDep) -> PageAnswer:
    """Read a page of a document of the ticket's bases."""
    return _page(await services.ticketed.read(body.ticket, body.file_id, body.offset, body.limit))


@router.post("/internal/v1/knowledge/read_file")
async def read_file_by_ticket(body: ReadByTicket, services: ServicesDep) -> PageAnswer:
    """Read a page of a file that the ticket's user has attached to a message."""
    return _page(await services.files.read(body.ticket, body.file_id, body.offset, body.limit))


def _page(page: TextPage) -> PageAnswer:
    return PageAnswer(
        file_id=page.document.source_id,
        filename=page.document.title,
        text=page.text,
        offset=page.offset,
        total_characters=page.total_characters,
        next_offset=page.next_offset,
    )


def _found(hit: ChunkHit) -> FoundChunk:
    return FoundChunk(
        knowledge_base_id=hit.knowledge_base_id,
        file_id=hit.source_id,
        filename=hit.title,
        heading_path=list(hit.chunk.heading_path),
        text=hit.chunk.text,
        score=hit.score,
        attributes=hit.attributes,
    )


def _listed(document: Document) -> ListedDocument:
    return ListedDocument(
        knowledge_base_id=document.knowledge_base_id,
        file_id=document.source_id,
        filename=document.title,
        size_bytes=document.size_bytes,
        chunk_count=document.chunk_count,
    )
