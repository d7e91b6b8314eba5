"""File indexes: knowledge bases of the backend itself, in which uploaded files are read once for those who use them.

A file index belongs to a user, for the files of their messages, or to an agent. No user is its member, so that it
stands in no list and nobody names it; who may read from it is decided where it is read.
"""

from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from backend.knowledge.domain.attachments import FileError
from backend.knowledge.domain.knowledge import Document, KnowledgeBase
from shared.ids import IdPrefix

FILE_INDEX_ID_START = f"{IdPrefix.FILE_INDEX}_"

FILE_INDEX_OWNER = "\x1fshelf"
"""The only member of a file index: ids of users are printable, so that no key belongs to this one."""

_ID_DIGITS = 32


class FileIndex(NamedTuple):
    """A file index, and the tenant of those who use it."""

    id: str
    tenant: str

    def as_base(self, now: datetime) -> KnowledgeBase:
        """Return the base that is created for it."""
        return KnowledgeBase(
            id=self.id,
            tenant=self.tenant,
            name="",
            summary="",
            topics=(),
            routing_hint="",
            routing_keywords=(),
            version=0,
            created_at=now,
        )


class FileIndexState(StrEnum):
    """How far a file in a file index is: read, still being read, not readable, or deleted by who uploaded it."""

    READ = "read"
    BEING_READ = "being_read"
    UNREADABLE = "unreadable"
    DELETED = "deleted"


class IndexedFile(NamedTuple):
    """A file in a file index. A file that was read has a document and the estimated tokens of its text.

    `error` says why one could not be read.
    """

    file_id: str
    name: str
    state: FileIndexState
    tokens: int = 0
    document: Document | None = None
    error: FileError | None = None


def file_index_of_user(tenant: str, user_id: str) -> FileIndex:
    """Return the file index for the files that a user attaches to their messages."""
    digest = sha256(f"{len(tenant)} {tenant} {user_id}".encode("utf-8", "surrogatepass")).hexdigest()
    return FileIndex(f"{FILE_INDEX_ID_START}user_{digest[:_ID_DIGITS]}", tenant)


def file_index_of_agent(tenant: str, agent_id: str) -> FileIndex:
    """Return the file index for the files of an agent."""
    return FileIndex(f"{FILE_INDEX_ID_START}{agent_id}", tenant)
