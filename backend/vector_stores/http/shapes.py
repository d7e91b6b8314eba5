"""Vector stores, their files, batches and search results as OpenAI's clients see them."""

from collections.abc import Sequence
from operator import not_
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

from backend.foundation.domain.json_objects import at_most
from backend.foundation.domain.paging import PageQuery
from backend.foundation.http.shapes import ListPage, Metadata, RequestBody, unix_seconds
from backend.knowledge.domain.attachments import AttachedFile, AttachedStatus, FileBatch, FileCounts, FileErrorCode
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Attributes, Filter
from backend.vector_stores.services.stores import StoreView
from shared.models.values import Place

MAX_BATCH_FILES = 500
MAX_FIELDS = 16
"""More than any object of a batch has; what has more is refused before each of them is a complaint."""

MAX_RESULTS = 50
MAX_QUERIES = 16
MAX_QUERY_CHARACTERS = 20_000
DEFAULT_NAME = "Vector store"
"""The name of a store that is created without one: models and restricted members read it."""

StoreName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
FileId = Annotated[str, Field(min_length=1, max_length=128)]
FileIds = Annotated[list[FileId], Field(max_length=MAX_BATCH_FILES)]
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]


class AutoChunking(RequestBody):
    """The one way in which files are cut: at headings, paragraphs and sentences, into 200 to 400 tokens."""

    type: Literal["auto"]


class CreateStore(RequestBody):
    """A new store; `description` becomes the summary of the knowledge base. Stores do not expire."""

    name: StoreName | None = None
    description: Annotated[str, Field(max_length=4000)] | None = None
    metadata: Metadata | None = None
    file_ids: FileIds | None = None
    chunking_strategy: AutoChunking | None = None
    expires_after: None = None


class UpdateStore(RequestBody):
    """Fields to change; what is left out stays, and so does a name that is null."""

    name: StoreName | None = None
    metadata: Metadata | None = None
    expires_after: None = None


class AttachFile(RequestBody):
    """An uploaded file of the caller, and the attributes by which searches may filter."""

    file_id: FileId
    attributes: Attributes | None = None
    chunking_strategy: AutoChunking | None = None


NarrowAttachFile = Annotated[AttachFile, at_most(MAX_FIELDS)]


class CreateBatch(RequestBody):
    """Uploaded files of the caller: either ids with attributes for all of them, or objects with their own."""

    file_ids: FileIds | None = None
    files: Annotated[list[NarrowAttachFile], Field(max_length=MAX_BATCH_FILES, fail_fast=True)] | None = None
    attributes: Attributes | None = None
    chunking_strategy: AutoChunking | None = None

    @model_validator(mode="after")
    def _names_files(self) -> "CreateBatch":
        if bool(self.file_ids) == bool(self.files):
            raise ValueError("file_ids: give either 'file_ids' or 'files', with at least one file")
        return self


NarrowCreateBatch = Annotated[CreateBatch, at_most(MAX_FIELDS)]


class UpdateAttributes(RequestBody):
    """The new attributes of a file; null removes all."""

    attributes: Attributes | None


class SearchRanking(RequestBody):
    """Which results are taken; every ranker named here is the same one."""

    ranker: Literal["auto", "none"] | None = None
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None


class SearchStoreBody(RequestBody):
    """A search of one store. Queries are searched as they are given, so `rewrite_query` cannot be true."""

    query: QueryText | Annotated[list[QueryText], Field(min_length=1, max_length=MAX_QUERIES)]
    filters: Filter | None = None
    max_num_results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] | None = None
    ranking_options: SearchRanking | None = None
    rewrite_query: Literal[False] | None = None


class StorePageQuery(PageQuery):
    """A page of a list: what follows `after`, or comes just before `before`."""

    before: str | None = None


class StoreFilePageQuery(StorePageQuery):
    """A page of files, of one status only where `filter` names it."""

    filter: AttachedStatus | None = None


class ShownCounts(BaseModel):
    """How many files have each status."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class ShownStore(BaseModel):
    """A vector store, which is the knowledge base of the same id.

    To a restricted member it shows id and name, and nothing for all else: no files, no bytes, no dates, no metadata.
    """

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    usage_bytes: int
    file_counts: ShownCounts
    status: Literal["in_progress", "completed"]
    expires_after: None = None
    expires_at: None = None
    last_active_at: int | None
    metadata: dict[str, str]


class StoreList(ListPage[ShownStore]):
    """A page of the caller's stores, by age."""


class ShownError(BaseModel):
    """Why a file became no document."""

    code: FileErrorCode
    message: str


class OtherChunking(BaseModel):
    """How files are cut, which OpenAI's API has no name for."""

    type: Literal["other"] = "other"


class ShownStoreFile(BaseModel):
    """A file of a store; `id` is that of the uploaded file, or of a document that was put under a name."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    usage_bytes: int
    vector_store_id: str
    status: AttachedStatus
    last_error: ShownError | None
    chunking_strategy: OtherChunking = OtherChunking()
    attributes: Attributes


class StoreFileList(ListPage[ShownStoreFile]):
    """A page of files, by age."""


class ShownBatch(BaseModel):
    """Files that were attached together, and how far they are."""

    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: AttachedStatus
    file_counts: ShownCounts


class FoundText(BaseModel):
    """The text of a found chunk."""

    type: Literal["text"] = "text"
    text: str


class ShownResult(BaseModel):
    """A found chunk with the file that it is from."""

    file_id: str
    filename: str
    score: float
    attributes: Attributes
    content: list[FoundText]
    place: Place | None = Field(default=None, exclude_if=not_)
    other_names: tuple[str, ...] = Field(default=(), exclude_if=not_)


class ResultPage(BaseModel):
    """Found chunks, best first, in one page. A score lies between 0 and 1, and grows with the relevance."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[ShownResult]
    has_more: Literal[False] = False
    next_page: None = None


class FilePieces(BaseModel):
    """The text of a file in pieces, in one page."""

    object: Literal["vector_store.file_content.page"] = "vector_store.file_content.page"
    data: list[FoundText]
    has_more: Literal[False] = False
    next_page: None = None


def show_vector_store(view: StoreView) -> ShownStore:
    """Show a store in the form that the caller's role allows."""
    base, counts = view.binding.base, FileCounts() if view.is_restricted else view.counts
    return ShownStore(
        id=base.id,
        created_at=0 if view.is_restricted else unix_seconds(base.created_at),
        name=base.name,
        usage_bytes=counts.size_bytes,
        file_counts=show_counts(counts),
        status="in_progress" if counts.in_progress else "completed",
        last_active_at=None if view.is_restricted else unix_seconds(view.active_at),
        metadata={} if view.is_restricted else base.metadata,
    )


def show_counts(counts: FileCounts) -> ShownCounts:
    """Show how far files are."""
    return ShownCounts(
        in_progress=counts.in_progress,
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
        total=counts.total,
    )


def show_file(file: AttachedFile) -> ShownStoreFile:
    """Show a file of a store."""
    return ShownStoreFile(
        id=file.id,
        created_at=unix_seconds(file.created_at),
        usage_bytes=file.size_bytes,
        vector_store_id=file.knowledge_base_id,
        status=file.status,
        last_error=ShownError(code=file.error.code, message=file.error.message) if file.error is not None else None,
        attributes=file.attributes,
    )


def show_batch(batch: FileBatch, counts: FileCounts) -> ShownBatch:
    """Show a batch; it failed where all its files did."""
    status = AttachedStatus.COMPLETED
    if batch.is_cancelled:
        status = AttachedStatus.CANCELLED
    elif counts.in_progress:
        status = AttachedStatus.IN_PROGRESS
    elif counts.failed and counts.failed == counts.total:
        status = AttachedStatus.FAILED
    return ShownBatch(
        id=batch.id,
        created_at=unix_seconds(batch.created_at),
        vector_store_id=batch.knowledge_base_id,
        status=status,
        file_counts=show_counts(counts),
    )


def show_results(queries: Sequence[str], hits: Sequence[ChunkHit]) -> ResultPage:
    """Show what a search found."""
    data = [
        ShownResult(
            file_id=hit.source_id,
            filename=hit.title,
            score=hit.score,
            attributes=hit.attributes,
            content=[FoundText(text=hit.chunk.text)],
            place=hit.chunk.place,
            other_names=hit.other_names,
        )
        for hit in hits
    ]
    return ResultPage(search_query=list(queries), data=data)
