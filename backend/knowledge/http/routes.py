"""Knowledge bases and their documents, and search over them."""

import asyncio
from collections.abc import Coroutine
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from backend.extraction.domain.media_types import READABLE
from backend.foundation.domain.paging import DEFAULT_LIMIT, MAX_LIMIT, PageQuery
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted
from backend.foundation.services.supervision import beside
from backend.identity.http.caller import CallerDep, OnceDep
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.http.knowledge_shapes import (
    BaseList,
    ChunkList,
    CreateBase,
    DocumentList,
    EditableBase,
    Hits,
    RestrictedBase,
    SearchBody,
    ShownBase,
    ShownDocument,
    UpdateBase,
    document_with_progress,
    show_base,
    show_chunk,
    show_document,
    show_hit,
)
from backend.knowledge.services.knowledge_bases import Description, KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import (
    IngestDocument,
    KnowledgeDocuments,
    NewDocument,
    SearchKnowledge,
)
from backend.knowledge.services.knowledge_progress import KnowledgeProgress

BasesDep = Annotated[KnowledgeCatalogue, Depends(service_of(KnowledgeCatalogue))]
DocumentsDep = Annotated[KnowledgeDocuments, Depends(service_of(KnowledgeDocuments))]
IngestDep = Annotated[IngestDocument, Depends(service_of(IngestDocument))]
SearchDep = Annotated[SearchKnowledge, Depends(service_of(SearchKnowledge))]
ProgressDep = Annotated[KnowledgeProgress, Depends(service_of(KnowledgeProgress))]
router = new_router("Knowledge bases")

BASE = "/v1/knowledge_bases/{base_id}"
DOCUMENT = f"{BASE}/documents/{{name:path}}"

AnyBase = EditableBase | ShownBase | RestrictedBase
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_DOCUMENT_BODY: dict[str, object] = {"requestBody": {"required": True, "content": dict.fromkeys(READABLE, _BINARY)}}
_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": ShownDocument}}
_DOCUMENT_ANSWER: dict[int | str, dict[str, object]] = {
    200: {"description": "The document's bytes", "content": dict.fromkeys(READABLE, _BINARY)}
}


class NamePageQuery(PageQuery):
    """A page of a list that is ordered by name."""

    order: Literal["asc", "desc"] = "asc"


class ChunkPageQuery(BaseModel):
    """The request for up to `limit` chunks of the document of this name that follow the chunk `after`."""

    document: str
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    after: str | None = None


@router.post("/v1/knowledge_bases", status_code=201, summary="Create a knowledge base")
async def create_base(
    body: CreateBase, bases: BasesDep, progress: ProgressDep, caller: CallerDep, once: OnceDep
) -> AnyBase:
    """Create a base that the caller owns."""
    not_chosen = {"restricted_grade", "support"} - body.model_fields_set
    described = Description.model_validate(body.model_dump(exclude=not_chosen))
    create = partial(bases.create, caller, described)
    return await _show(bases, progress, await once(create, partial(bases.find, caller)))


@router.get("/v1/knowledge_bases", summary="List knowledge bases")
async def list_bases(
    bases: BasesDep, progress: ProgressDep, caller: CallerDep, page: Annotated[PageQuery, Query()]
) -> BaseList:
    """Return a page of the bases that the caller is a member of, the newest first unless asked otherwise."""
    found, has_more = await bases.page(caller, after=page.after, limit=page.limit, descending=page.descending)
    embedded = await progress.of(found)
    shown = [show_base(binding, progress=embedded.get(binding.base.id)) for binding in found]
    return BaseList.of(shown, [base.id for base in shown], has_more=has_more)


@router.get(BASE, summary="Retrieve a knowledge base")
async def retrieve_base(base_id: str, bases: BasesDep, progress: ProgressDep, caller: CallerDep) -> AnyBase:
    """Return a base; a restricted member sees id, name, hint, keywords and their role."""
    return await _show(bases, progress, await bases.find(caller, base_id))


@router.patch(BASE, summary="Update a knowledge base")
async def update_base(
    base_id: str, body: UpdateBase, bases: BasesDep, progress: ProgressDep, caller: CallerDep
) -> AnyBase:
    """Change the given fields; for owners and editors, but what is said to be for owners for owners alone."""
    changes = body.model_dump(exclude_unset=True)
    return await _show(bases, progress, await bases.describe(caller, base_id, changes))


@router.delete(BASE, summary="Delete a knowledge base")
async def delete_base(base_id: str, bases: BasesDep, caller: CallerDep) -> Deleted:
    """Delete a base with its documents; for owners."""
    await bases.delete(caller, base_id)
    return Deleted(id=base_id, object="knowledge_base.deleted")


@router.get(f"{BASE}/documents", summary="List documents")
async def list_documents(
    base_id: str,
    documents: DocumentsDep,
    progress: ProgressDep,
    caller: CallerDep,
    page: Annotated[NamePageQuery, Query()],
) -> DocumentList:
    """Return a page of documents by name; with how far each has been embedded, where that is done."""
    found = await documents.page(caller, base_id, after=page.after, limit=page.limit, descending=page.descending)
    embedded = await progress.of_documents(found.binding, found.documents)
    shown = [document_with_progress(document, embedded.get(document.id)) for document in found.documents]
    return DocumentList.of(shown, [document.id for document in shown], has_more=found.has_more)


@router.get(f"{BASE}/chunks", summary="List the chunks of a document")
async def list_chunks(
    base_id: str, documents: DocumentsDep, caller: CallerDep, page: Annotated[ChunkPageQuery, Query()]
) -> ChunkList:
    """Return a page of the chunks into which a document was cut, in its order."""
    found = await documents.chunks(caller, base_id, page.document, after=page.after, limit=page.limit)
    shown = [show_chunk(chunk) for chunk in found.chunks]
    return ChunkList.of(shown, [chunk.id for chunk in shown], has_more=found.has_more)


@router.put(DOCUMENT, summary="Put a document", responses=_CREATED, openapi_extra=_DOCUMENT_BODY)
async def put_document(
    base_id: str, name: str, request: Request, response: Response, ingest: IngestDep, caller: CallerDep
) -> ShownDocument:
    """Store a document: 201 under a new name, 200 where it replaces one; the same bytes again change nothing.

    The Content-Type header determines its format, or else the ending of its name. The Last-Modified header tells when
    its file was changed, and becomes the attribute `modified_at`, in seconds since 1970.
    """
    headers = request.headers
    modified_at = _seconds_in(headers.get("last-modified"))
    new = NewDocument(name, headers.get("content-type"), await whole_body(request), modified_at)
    document, is_new = await while_client_waits(request, ingest.put(caller, base_id, new))
    response.status_code = 201 if is_new else 200
    return show_document(document)


def _seconds_in(date: str | None) -> int | None:
    """Read the date of a header; one that is none is passed over (RFC 9110, section 8.8.2)."""
    try:
        return int(parsedate_to_datetime(date).timestamp()) if date else None
    except (ValueError, OverflowError):
        return None


@router.get(DOCUMENT, summary="Retrieve a document", responses=_DOCUMENT_ANSWER, response_class=Response)
async def retrieve_document(base_id: str, name: str, documents: DocumentsDep, caller: CallerDep) -> Response:
    """Return the bytes that were put."""
    document, body = await documents.read(caller, base_id, name)
    # An uploaded HTML page must not run with the origin of this API.
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(document.name, safe='')}",
        "x-content-type-options": "nosniff",
    }
    return Response(body, media_type=document.media_type, headers=headers)


@router.delete(DOCUMENT, summary="Delete a document")
async def delete_document(base_id: str, name: str, documents: DocumentsDep, caller: CallerDep) -> Deleted:
    """Delete a document; searches no longer find it."""
    document = await documents.delete(caller, base_id, name)
    return Deleted(id=document.id, object="knowledge_base.document.deleted")


@router.post(f"{BASE}/search", summary="Search a knowledge base")
async def search_base(base_id: str, body: SearchBody, search: SearchDep, caller: CallerDep) -> Hits:
    """Return the best chunks, best first."""
    hits = await search.search(caller, base_id, body.query, body.max_results)
    return Hits(data=[show_hit(hit) for hit in hits])


async def _show(bases: KnowledgeCatalogue, progress: KnowledgeProgress, binding: Binding) -> AnyBase:
    embedded = (await progress.of([binding])).get(binding.base.id)
    left_out = await bases.find_left_out(binding)
    return show_base(binding, left_out, embedded, is_too_small=await bases.is_too_small(binding))


Result = TypeVar("Result")


async def whole_body(request: Request) -> bytearray:
    """Return the body, held once in memory; joining its parts would hold it twice."""
    body = bytearray()
    async for part in request.stream():
        body += part
    return body


async def while_client_waits(request: Request, work: Coroutine[None, None, Result]) -> Result:
    """Run work whose request was read to its end; it is cancelled when the client leaves.

    Raises:
        ClientDisconnect: the client has left.
    """
    async with beside(work) as working, beside(_client_leaves(request)) as leaving:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
