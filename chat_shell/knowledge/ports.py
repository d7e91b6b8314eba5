"""The port for retrieval through the backend."""

from typing import Protocol

from pydantic import Field

from shared.models.execution import AccessMode
from shared.models.values import AttributeValue, Value


class KnowledgeChunk(Value):
    """A chunk as the backend returns it in an unrestricted turn."""

    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: tuple[str, ...]
    text: str
    score: float
    attributes: dict[str, AttributeValue] = Field(default={})


class KnowledgeAnswer(Value):
    """The result of a search; in restricted mode there are no chunks."""

    access_mode: AccessMode
    chunks: tuple[KnowledgeChunk, ...]


class KnowledgeDocument(Value):
    """An entry in a list of documents."""

    knowledge_base_id: str
    file_id: str
    filename: str
    size_bytes: int


class KnowledgePage(Value):
    """A part of a document's text; `next_offset` is None at the end of the document. Offsets count characters."""

    file_id: str
    filename: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None


class TurnCredentials(Value):
    """Credentials of the turn for which knowledge is read: its signed ticket, and its request id for the logs."""

    ticket: str
    request_id: str


class Knowledge(Protocol):
    """Retrieval through the backend, which derives the access rights from the turn's ticket at each call.

    Every method raises:
        PermissionDenied: a base is not in the ticket, or the user may not read the text.
        Unauthenticated: the ticket is forged or expired.
        Unavailable: the backend cannot be reached. Retryable.
    """

    async def search(
        self,
        credentials: TurnCredentials,
        query: str,
        base_ids: tuple[str, ...],
        *,
        limit: int,
        whole_below_tokens: int,
    ) -> KnowledgeAnswer:
        """Return up to `limit` chunks, or all in document order where all have at most `whole_below_tokens` tokens."""
        ...

    async def list_documents(
        self, credentials: TurnCredentials, base_ids: tuple[str, ...]
    ) -> tuple[KnowledgeDocument, ...]:
        """List the documents, ordered by base and name."""
        ...

    async def read_document(
        self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int
    ) -> KnowledgePage:
        """Read up to `limit` characters of a document's text from `offset`.

        Raises:
            NotFound: the bases of the ticket have no such document.
        """
        ...

    async def read_file(self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int) -> KnowledgePage:
        """Read up to `limit` characters from `offset` of the text of a file that the user attached to a message.

        Raises:
            NotFound: the ticket names no such file, or it has no text.
        """
        ...
