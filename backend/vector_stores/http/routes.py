"""Vector stores in OpenAI's words, and search over them."""

from functools import partial
from typing import Annotated

from fastapi import Depends, Query

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted
from backend.identity.http.caller import CallerDep, OnceDep
from backend.knowledge.services.knowledge_bases import Description
from backend.search.domain.filters import check_filter
from backend.vector_stores.http.shapes import (
    DEFAULT_NAME,
    CreateStore,
    ResultPage,
    SearchStoreBody,
    ShownStore,
    StoreList,
    StorePageQuery,
    UpdateStore,
    show_results,
    show_vector_store,
)
from backend.vector_stores.services.stores import SearchStore, StoreQuery, VectorStores
from shared.errors import UnsupportedValue

DEFAULT_RESULTS = 10
StoresDep = Annotated[VectorStores, Depends(service_of(VectorStores))]
SearchDep = Annotated[SearchStore, Depends(service_of(SearchStore))]
router = new_router("Vector stores")

STORE = "/v1/vector_stores/{vector_store_id}"


@router.post("/v1/vector_stores", status_code=201, summary="Create a vector store")
async def create_store(body: CreateStore, stores: StoresDep, caller: CallerDep, once: OnceDep) -> ShownStore:
    """Create a store that the caller owns, with files that they have uploaded."""
    described = Description(
        name=body.name or DEFAULT_NAME,
        summary=body.description or "",
        topics=(),
        routing_hint="",
        routing_keywords=(),
        metadata=body.metadata or {},
    )
    create = partial(stores.create, caller, described, body.file_ids or ())
    return show_vector_store(await once(create, partial(stores.find, caller)))


@router.get("/v1/vector_stores", summary="List vector stores")
async def list_stores(stores: StoresDep, caller: CallerDep, page: Annotated[StorePageQuery, Query()]) -> StoreList:
    """Return a page of the stores that the caller is a member of, the newest first unless asked otherwise."""
    if page.before is not None:
        raise UnsupportedValue("This list is read forwards: use 'after', or the other 'order'.", param="before")
    found, has_more = await stores.page(caller, after=page.after, limit=page.limit, descending=page.descending)
    shown = [show_vector_store(view) for view in found]
    return StoreList.of(shown, [store.id for store in shown], has_more=has_more)


@router.get(STORE, summary="Retrieve a vector store")
async def retrieve_store(vector_store_id: str, stores: StoresDep, caller: CallerDep) -> ShownStore:
    """Return a store; a restricted member sees id and name."""
    return show_vector_store(await stores.find(caller, vector_store_id))


@router.post(STORE, summary="Update a vector store")
async def update_store(vector_store_id: str, body: UpdateStore, stores: StoresDep, caller: CallerDep) -> ShownStore:
    """Change name and metadata; for owners and editors."""
    changes: dict[str, object] = {"name": body.name} if body.name is not None else {}
    if "metadata" in body.model_fields_set:
        changes["metadata"] = body.metadata or {}
    return show_vector_store(await stores.describe(caller, vector_store_id, changes))


@router.delete(STORE, summary="Delete a vector store")
async def delete_store(vector_store_id: str, stores: StoresDep, caller: CallerDep) -> Deleted:
    """Delete a store with its documents; uploaded files stay. For owners."""
    await stores.delete(caller, vector_store_id)
    return Deleted(id=vector_store_id, object="vector_store.deleted")


@router.post(f"{STORE}/search", summary="Search a vector store")
async def search_store(vector_store_id: str, body: SearchStoreBody, search: SearchDep, caller: CallerDep) -> ResultPage:
    """Return the best chunks, best first."""
    if body.filters is not None:
        check_filter(body.filters, "filters")
    queries = [body.query] if isinstance(body.query, str) else body.query
    min_score = body.ranking_options.score_threshold if body.ranking_options is not None else None
    asked = StoreQuery(queries, body.max_num_results or DEFAULT_RESULTS, body.filters, min_score or 0.0)
    return show_results(queries, await search.search(caller, vector_store_id, asked))
