"""The files of vector stores in OpenAI's words."""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Response

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted
from backend.identity.http.caller import CallerDep, OnceDep
from backend.knowledge.domain.attachments import AttachedQuery
from backend.vector_stores.http.shapes import (
    AttachFile,
    FilePieces,
    FoundText,
    ShownStoreFile,
    StoreFileList,
    StoreFilePageQuery,
    UpdateAttributes,
    show_file,
)
from backend.vector_stores.services.store_files import NewAttachment, StoreFiles
from shared.errors import InvalidRequest

FilesDep = Annotated[StoreFiles, Depends(service_of(StoreFiles))]
PageDep = Annotated[StoreFilePageQuery, Query()]
router = new_router("Vector store files")

FILES = "/v1/vector_stores/{vector_store_id}/files"
FILE = f"{FILES}/{{file_id}}"


@router.post(FILES, status_code=201, summary="Attach a file")
async def attach_file(
    vector_store_id: str, body: AttachFile, files: FilesDep, caller: CallerDep, once: OnceDep
) -> ShownStoreFile:
    """Attach an uploaded file of the caller; it is read soon, and searched once its status is `completed`."""
    new = NewAttachment(body.file_id, body.attributes or {})
    create = partial(files.attach, caller, vector_store_id, new)
    return show_file(await once(create, partial(files.find, caller, vector_store_id)))


@router.get(FILES, summary="List the files of a vector store")
async def list_store_files(vector_store_id: str, files: FilesDep, caller: CallerDep, page: PageDep) -> StoreFileList:
    """Return a page of files, the newest first unless asked otherwise; documents put under a name are among them."""
    return await list_attached_files(files, caller, page_asked(vector_store_id, page))


@router.get(FILE, summary="Retrieve a file of a vector store")
async def retrieve_store_file(vector_store_id: str, file_id: str, files: FilesDep, caller: CallerDep) -> ShownStoreFile:
    """Return how far a file is."""
    return show_file(await files.find(caller, vector_store_id, file_id))


@router.post(FILE, summary="Update the attributes of a file")
async def update_store_file(
    vector_store_id: str, file_id: str, body: UpdateAttributes, files: FilesDep, caller: CallerDep
) -> ShownStoreFile:
    """Replace the attributes of a file."""
    changed = await files.set_attributes(caller, vector_store_id, file_id, body.attributes or {})
    return show_file(changed)


@router.delete(FILE, summary="Detach a file")
async def detach_file(vector_store_id: str, file_id: str, files: FilesDep, caller: CallerDep) -> Deleted:
    """Take a file from a store; the uploaded file stays, and a document that was put under a name is deleted."""
    await files.detach(caller, vector_store_id, file_id)
    return Deleted(id=file_id, object="vector_store.file.deleted")


@router.get(f"{FILE}/content", summary="Read the text of a file", response_model=FilePieces)
async def read_store_file(vector_store_id: str, file_id: str, files: FilesDep, caller: CallerDep) -> Response:
    """Return the text of a file in the pieces that searches find; none before it is `completed`."""
    _, texts = await files.texts(caller, vector_store_id, file_id)

    def write() -> bytes:
        return FilePieces(data=[FoundText(text=text) for text in texts]).model_dump_json().encode()

    return Response(await asyncio.to_thread(write), media_type="application/json")


def page_asked(vector_store_id: str, page: StoreFilePageQuery) -> AttachedQuery:
    """Return what a query of a list asks for.

    Raises:
        InvalidRequest: it reads both forwards and backwards.
    """
    if page.after is not None and page.before is not None:
        raise InvalidRequest("Give either 'after' or 'before', not both.", param="before")
    return AttachedQuery(
        vector_store_id,
        page.limit,
        page.descending,
        after=page.after,
        before=page.before,
        status=page.filter,
    )


async def list_attached_files(files: StoreFiles, caller: CallerDep, query: AttachedQuery) -> StoreFileList:
    """Show a page of files."""
    found, has_more = await files.page(caller, query)
    shown = [show_file(file) for file in found]
    return StoreFileList.of(shown, [file.id for file in shown], has_more=has_more)
