"""The port for retrieval through the backend."""

from typing import Protocol

from shared.models.execution import AccessMode
from shared.models.knowledge_api import KnowledgeChunk, KnowledgeDocument, KnowledgePage
from shared.models.values import Value


class KnowledgeAnswer(Value):
    """The result of a search; in restricted mode there are no chunks."""

    access_mode: AccessMode
    chunks: tuple[KnowledgeChunk, ...]


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
