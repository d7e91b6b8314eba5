"""Files that are attached to vector stores together, in OpenAI's words."""

from functools import partial

from backend.foundation.http.json_body import LongFormRoute, new_router
from backend.identity.http.caller import CallerDep, OnceDep
from backend.vector_stores.http.routes_files import FilesDep, PageDep, list_attached_files, page_asked
from backend.vector_stores.http.shapes import NarrowCreateBatch, ShownBatch, StoreFileList, show_batch
from backend.vector_stores.services.store_files import NewAttachment

router = new_router("Vector store files", LongFormRoute)

BATCHES = "/v1/vector_stores/{vector_store_id}/file_batches"
BATCH = f"{BATCHES}/{{batch_id}}"


@router.post(BATCHES, status_code=201, summary="Attach files together")
async def create_batch(
    vector_store_id: str, body: NarrowCreateBatch, files: FilesDep, caller: CallerDep, once: OnceDep
) -> ShownBatch:
    """Attach uploaded files of the caller as a batch."""
    if body.files:
        new = [NewAttachment(file.file_id, file.attributes or {}) for file in body.files]
    else:
        new = [NewAttachment(file_id, body.attributes or {}) for file_id in body.file_ids or ()]
    param = "files" if body.files else "file_ids"
    create = partial(files.attach_together, caller, vector_store_id, new, param)
    return show_batch(*await once(create, partial(files.find_batch, caller, vector_store_id)))


@router.get(BATCH, summary="Retrieve a batch of files")
async def retrieve_batch(vector_store_id: str, batch_id: str, files: FilesDep, caller: CallerDep) -> ShownBatch:
    """Return how far the files of a batch are."""
    return show_batch(*await files.find_batch(caller, vector_store_id, batch_id))


@router.post(f"{BATCH}/cancel", summary="Cancel a batch of files")
async def cancel_batch(vector_store_id: str, batch_id: str, files: FilesDep, caller: CallerDep) -> ShownBatch:
    """Cancel the files of a batch that are not completed."""
    return show_batch(*await files.cancel_batch(caller, vector_store_id, batch_id))


@router.get(f"{BATCH}/files", summary="List the files of a batch")
async def list_batch_files(
    vector_store_id: str, batch_id: str, files: FilesDep, caller: CallerDep, page: PageDep
) -> StoreFileList:
    """Return a page of the files of a batch."""
    return await list_attached_files(files, caller, page_asked(vector_store_id, page)._replace(batch_id=batch_id))
