"""Files that are attached to a base: on their way to becoming documents, or documents already."""

from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from backend.search.domain.filters import Attributes
from shared.models.values import Value

FileErrorCode = Literal["server_error", "unsupported_file", "invalid_file"]
"""OpenAI's codes of why a file became no document."""


class AttachedStatus(StrEnum):
    """How far an attached file is; a completed one is a document of its base."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FileError(Value):
    """Why a file became no document; the message names the file and what is wrong with it."""

    code: FileErrorCode
    message: str


class Attachment(Value):
    """A file that is to become a document of a base; tenant and user are those of who attached it."""

    knowledge_base_id: str
    file_id: str
    tenant: str
    user_id: str
    filename: str
    attributes: Attributes
    created_at: datetime


class AttachedFile(Value):
    """A file of a base as its readers see it; documents that were put under a name are such files too.

    `id` is the id of the uploaded file, or else of the document; `document_name` is the name of the document in its
    base, None before there is one.
    """

    id: str
    knowledge_base_id: str
    status: AttachedStatus
    created_at: datetime
    size_bytes: int
    attributes: Attributes
    error: FileError | None
    document_name: str | None


class FileBatch(Value):
    """Files that were attached together."""

    id: str
    knowledge_base_id: str
    created_at: datetime
    is_cancelled: bool = False


class FileCounts(NamedTuple):
    """How many attached files have each status, and the bytes of those that are documents."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    size_bytes: int = 0
    active_at: datetime | None = None

    @property
    def total(self) -> int:
        """All files."""
        return self.in_progress + self.completed + self.failed + self.cancelled


class AttachedQuery(NamedTuple):
    """The request for a page of a base's files by age: those behind `after`, or those just before `before`.

    With `batch_id` only files of this batch, with `status` only those of this status.
    """

    base_id: str
    limit: int
    descending: bool
    after: str | None = None
    before: str | None = None
    status: AttachedStatus | None = None
    batch_id: str | None = None


class AttachmentClaim(NamedTuple):
    """The right to make a document of an attached file, until its lease ends and another process takes it."""

    base_id: str
    file_id: str
    fence: int


class TakenAttachment(NamedTuple):
    """An attached file that is to be read now; `attempts` counts how often that was begun."""

    attachment: Attachment
    claim: AttachmentClaim
    attempts: int


def number_name(filename: str, number: int) -> str:
    """Return the name of the document of a file where others of its name are there: `report (2).pdf`."""
    if number == 1:
        return filename
    stem, dot, ending = filename.rpartition(".")
    return f"{stem} ({number}).{ending}" if stem and dot else f"{filename} ({number})"
