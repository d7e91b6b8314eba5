"""Files in OpenAI's words: upload, list, retrieve, download, delete."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from backend.files.domain import FilePurpose, StoredFile, purpose_of
from backend.files.http.multipart import read_upload
from backend.files.services import Files, NewFile
from backend.foundation.domain.paging import PageQuery
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, unix_seconds
from backend.foundation.services.steps import sha256_of
from backend.identity.http.caller import CallerDep, OnceDep
from shared.models.values import JsonObject

MAX_FILES_LIMIT = 10_000
"""What OpenAI's API takes as `limit`, and its default."""

MAX_PAGE_FILES = 1_000
"""The most files of one page, whatever the limit: more would hold the event loop too long."""

FilesDep = Annotated[Files, Depends(service_of(Files))]
router = new_router("Files")

FILE = "/v1/files/{file_id}"
_FORM: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["purpose", "file"],
                    "properties": {
                        "purpose": {"type": "string", "enum": list(FilePurpose)},
                        "file": {"type": "string", "format": "binary"},
                    },
                }
            }
        },
    }
}
_CONTENT: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The bytes of the file",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class FilePageQuery(PageQuery):
    """A page of files; a page has at most 1,000 of them, and `has_more` says whether others follow."""

    limit: int = Field(MAX_FILES_LIMIT, ge=1, le=MAX_FILES_LIMIT)
    purpose: str | None = None


class ShownFile(BaseModel):
    """A file as OpenAI's API shows it; it never expires."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: FilePurpose
    status: Literal["processed"] = "processed"
    expires_at: None = None
    status_details: None = None


class UploadedFileList(ListPage[ShownFile]):
    """A page of files, by age."""


@router.post("/v1/files", status_code=201, summary="Upload a file", openapi_extra=_FORM)
async def upload_file(request: Request, files: FilesDep, caller: CallerDep, once: OnceDep) -> ShownFile:
    """Store a file that belongs to the caller."""
    upload = await read_upload(request)
    purpose = purpose_of(upload.fields.get("purpose"))
    digest = await sha256_of(upload.body)
    new = NewFile(upload.filename, purpose, upload.content_type, upload.body, digest)
    told: JsonObject = {
        "purpose": purpose.value,
        "filename": new.filename,
        "content_type": new.content_type,
        "sha256": digest,
    }
    create = partial(files.upload, caller, new)
    return _show(await once.of_fields(told, create, partial(files.find, caller)))


@router.get("/v1/files", summary="List files")
async def list_files(files: FilesDep, caller: CallerDep, page: Annotated[FilePageQuery, Query()]) -> UploadedFileList:
    """Return a page of the caller's files, the newest first unless asked otherwise."""
    bounded = page.model_copy(update={"limit": min(page.limit, MAX_PAGE_FILES)})
    found = await files.page(caller, bounded, page.purpose)
    shown = [_show(file) for file in found.files]
    return UploadedFileList.of(shown, [file.id for file in shown], has_more=found.has_more)


@router.get(FILE, summary="Retrieve a file")
async def retrieve_file(file_id: str, files: FilesDep, caller: CallerDep) -> ShownFile:
    """Return what is known of a file."""
    return _show(await files.find(caller, file_id))


@router.get(f"{FILE}/content", summary="Download a file", responses=_CONTENT, response_class=StreamingResponse)
async def download_file(file_id: str, files: FilesDep, caller: CallerDep) -> StreamingResponse:
    """Return the bytes that were uploaded."""
    file = await files.find(caller, file_id)
    # An uploaded HTML page must not run with the origin of this API.
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}",
        "content-length": str(file.size_bytes),
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(_content(files, file), media_type="application/octet-stream", headers=headers)


@router.delete(FILE, summary="Delete a file")
async def delete_file(file_id: str, files: FilesDep, caller: CallerDep) -> Deleted:
    """Delete a file, and soon after what was made of it in vector stores."""
    await files.delete(caller, file_id)
    return Deleted(id=file_id, object="file")


async def _content(files: Files, file: StoredFile) -> AsyncGenerator[bytes]:
    async for piece in files.pieces(file):
        yield piece


def _show(file: StoredFile) -> ShownFile:
    return ShownFile(
        id=file.id,
        bytes=file.size_bytes,
        created_at=unix_seconds(file.created_at),
        filename=file.filename,
        purpose=file.purpose,
    )
