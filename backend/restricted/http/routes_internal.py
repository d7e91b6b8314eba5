"""Routes for chat_shell: retrieval by ticket. Not for users, so not in the OpenAPI document."""

import hmac
from typing import Annotated

from fastapi import Depends, Request

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import OptionsDep, service_of
from backend.identity.http.caller import BearerDep
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.services.knowledge_documents import TextPage
from backend.restricted.domain.restricted import SearchRequest
from backend.restricted.services.sealed_outcomes import Outcome, SealedOutcomes
from backend.restricted.services.sealed_search import SealedAnswer, SealedChunk, SealedSearches
from backend.restricted.services.ticketed_knowledge import TicketedFiles, TicketedKnowledge
from backend.restricted.services.weigh_answers import AnswerWeighing
from backend.search.domain.chunks import ChunkHit
from shared.certificates import HAS_CERTIFICATE
from shared.errors import Unauthenticated
from shared.models.execution import AccessMode
from shared.models.knowledge_api import (
    KNOWLEDGE_PATH,
    DocumentsAnswer,
    DocumentsByTicket,
    KnowledgeChunk,
    KnowledgeDocument,
    KnowledgePage,
    OutcomeAnswer,
    ProtectedChunkShape,
    ReadByTicket,
    ReportedOutcome,
    SealedPart,
    SealedSearchAnswer,
    SearchAnswer,
    SearchByTicket,
    StrictPart,
    WeighByTicket,
    WeighedAnswer,
)
from shared.models.safe_summary import SummaryVersions


async def _service_token(request: Request, options: OptionsDep, credentials: BearerDep) -> None:
    if options.needs_certificate and not request.scope["state"].get(HAS_CERTIFICATE):
        raise Unauthenticated("Connections of services need a client certificate here.")
    presented = credentials.credentials if credentials else ""
    is_known = hmac.compare_digest(presented.encode(), options.service_token.encode())
    if not options.service_token or not is_known:
        raise Unauthenticated("The service token is not valid.")


KnowledgeDep = Annotated[TicketedKnowledge, Depends(service_of(TicketedKnowledge))]
FilesDep = Annotated[TicketedFiles, Depends(service_of(TicketedFiles))]
SearchesDep = Annotated[SealedSearches, Depends(service_of(SealedSearches))]
OutcomesDep = Annotated[SealedOutcomes, Depends(service_of(SealedOutcomes))]
WeighingDep = Annotated[AnswerWeighing, Depends(service_of(AnswerWeighing))]
router = new_router("Internal")
router.include_in_schema = False
router.dependencies.append(Depends(_service_token))


@router.post(KNOWLEDGE_PATH + "/search")
async def search_by_ticket(
    body: SearchByTicket, knowledge: KnowledgeDep, searches: SearchesDep
) -> SealedSearchAnswer | SearchAnswer:
    """Search the ticket's bases."""
    request = SearchRequest(body.query, tuple(body.knowledge_base_ids), body.limit, body.whole_below_tokens)
    if body.sealed is not None:
        answer = await searches.search(body.ticket, request, body.sealed)
        return SealedSearchAnswer(access_mode=AccessMode.RESTRICTED, whole=answer.whole, sealed=seal_part(answer))
    result = await knowledge.search(body.ticket, request)
    return SearchAnswer(access_mode=result.access_mode, whole=result.whole, data=tuple(map(_show_hit, result.hits)))


@router.post(KNOWLEDGE_PATH + "/outcomes")
async def report_outcome(body: ReportedOutcome, outcomes: OutcomesDep) -> OutcomeAnswer:
    """Record the outcome of a sealed search; a summary is released only after that."""
    verdict = await outcomes.report(body.ticket, outcome_in(body))
    return OutcomeAnswer(recorded=True, release=verdict.release, reason=verdict.reason)


@router.post(KNOWLEDGE_PATH + "/weigh")
async def weigh_answer(body: WeighByTicket, weighing: WeighingDep) -> WeighedAnswer:
    """Compare by its meaning what the gate would release with what its search has shown."""
    return await weighing.weigh(body.ticket, body.search_id, body.texts)


@router.post(KNOWLEDGE_PATH + "/documents")
async def documents_by_ticket(body: DocumentsByTicket, knowledge: KnowledgeDep) -> DocumentsAnswer:
    """List the documents of the ticket's bases."""
    documents = await knowledge.documents(body.ticket, body.knowledge_base_ids)
    return DocumentsAnswer(data=tuple(map(_show_document, documents)))


@router.post(KNOWLEDGE_PATH + "/read")
async def read_by_ticket(body: ReadByTicket, knowledge: KnowledgeDep) -> KnowledgePage:
    """Read a page of a document of the ticket's bases."""
    return _page(await knowledge.read(body.ticket, body.file_id, body.offset, body.limit))


@router.post(KNOWLEDGE_PATH + "/read_file")
async def read_file_by_ticket(body: ReadByTicket, files: FilesDep) -> KnowledgePage:
    """Read a page of a file that the ticket's user has attached to a message."""
    return _page(await files.read(body.ticket, body.file_id, body.offset, body.limit))


def _page(page: TextPage) -> KnowledgePage:
    return KnowledgePage(
        file_id=page.document.source_id,
        filename=page.document.title,
        text=page.text,
        offset=page.offset,
        total_characters=page.total_characters,
        next_offset=page.next_offset,
    )


def _show_hit(hit: ChunkHit) -> KnowledgeChunk:
    return KnowledgeChunk(
        knowledge_base_id=hit.knowledge_base_id,
        file_id=hit.source_id,
        filename=hit.title,
        heading_path=hit.chunk.heading_path,
        place=hit.chunk.place,
        other_names=hit.other_names,
        text=hit.chunk.text,
        score=hit.score,
        attributes=hit.attributes,
    )


def _show_document(document: Document) -> KnowledgeDocument:
    return KnowledgeDocument(
        knowledge_base_id=document.knowledge_base_id,
        file_id=document.source_id,
        filename=document.title,
        size_bytes=document.size_bytes,
        chunk_count=document.chunk_count,
    )


def outcome_in(reported: ReportedOutcome) -> Outcome:
    """Return the outcome to be recorded, without `chunks_found`, which the charge has counted itself."""
    versions, same = (
        {name: getattr(reported, name) for name in kind.model_fields if name in ReportedOutcome.model_fields}
        for kind in (SummaryVersions, Outcome)
    )
    return Outcome.model_validate({**same, "base_ids": reported.knowledge_base_ids, "versions": versions})


def seal_part(answer: SealedAnswer) -> SealedPart:
    """Return the answer to the sealed room as a JSON body."""
    chunks, siblings = tuple(map(_chunk, answer.chunks)), tuple(map(_chunk, answer.siblings))
    is_open = answer.areas is None
    return SealedPart(
        search_id=answer.search_id,
        refusal=answer.refusal,
        released=answer.released,
        chunks=chunks if is_open else (),
        siblings=siblings if is_open else (),
        strict=None if answer.areas is None else StrictPart(areas=answer.areas, chunks=chunks, siblings=siblings),
        canary_replies=answer.canary_replies,
        support=answer.support,
        has_records=answer.has_records,
        is_weighed=answer.is_weighed,
        restricted_translation=tuple(answer.translatable_base_ids),
    )


def _chunk(sealed: SealedChunk) -> ProtectedChunkShape:
    hit = sealed.hit
    return ProtectedChunkShape(
        knowledge_base_id=hit.knowledge_base_id,
        chunk_id=hit.chunk.id,
        document=hit.document_name,
        heading_path=hit.chunk.heading_path,
        ordinal=hit.chunk.ordinal,
        text=hit.chunk.text,
        canary=sealed.canary,
    )
