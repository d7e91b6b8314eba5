"""The ports of knowledge: storage, retrieval, reading of documents, questions about protected text, observation."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.attachments import Attachment, AttachmentClaim
from backend.knowledge.domain.knowledge import Binding, Document, KnowledgeBase, MemberRole
from backend.knowledge.domain.labels import Labels
from backend.search.domain.chunks import Chunk


class KnowledgeStore(Protocol):
    """Bases, members and documents."""

    async def create_base(
        self, base: KnowledgeBase, owner_id: str, claim: KeyClaim | None = None, attached: Sequence[Attachment] = ()
    ) -> None:
        """Store a base, its first owner and the queued files of the base, all of them or nothing; no file comes twice.

        Raises:
            KeyHeld: another request has used the key of the claim.
        """
        ...

    async def ensure_base(self, base: KnowledgeBase, owner_id: str) -> None:
        """Store a base with its only owner, where there is none of its id."""
        ...

    async def bindings(self, tenant: str, user_id: str, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
        """Return the bases in which the user is a member, or a group that they are in, ordered by id.

        Of several roles in a base the strictest counts.

        With `base_ids` only those; a base of which they are not a member is left out.
        """
        ...

    async def update_base(self, base_id: str, changes: Mapping[str, object]) -> None:
        """Replace the given fields of a base's description, and no other: two callers may change two at once.

        Its version grows where `restricted_translation`, grade, support or content change, so that no summary from
        before is given any more.
        """
        ...

    async def delete_base(self, base_id: str) -> None:
        """Delete a base with members, documents and chunks."""
        ...

    async def members(self, base_id: str) -> Mapping[str, MemberRole]:
        """Return members and their roles: user ids, and what stands for groups (`name_group`)."""
        ...

    async def set_member(self, base_id: str, user_id: str, role: MemberRole) -> None:
        """Add a member or change their role.

        Raises:
            Conflict: the base would be left without an owner.
        """
        ...

    async def remove_member(self, base_id: str, user_id: str) -> bool:
        """Remove a member; False when there was none.

        Raises:
            Conflict: the base would be left without an owner.
        """
        ...

    async def put_document(
        self,
        document: Document,
        body: bytes | bytearray,
        batches: AsyncIterable[Sequence[Chunk]],
        claim: AttachmentClaim | None = None,
        *,
        instead_of: Document | None = None,
    ) -> tuple[Document, bool]:
        """Store a document with its chunks as they come; it replaces the document of the same name.

        Return the document as stored, and whether its name is new. A replaced document keeps its id, even if it was
        stored by somebody else at the same time. Readers see the whole document or none of it, and never two
        documents of one name. The version of the base grows. `document.chunk_count` is the number of all chunks; a
        batch has at most `CHUNKS_AT_ONCE`. What was stored is deleted again where the batches end with an exception, or
        the call is cancelled. What replaces a document keeps its attributes but for those that it brings itself.

        With a claim, the document is that of an attached file: it replaces none, gets the first free name that
        `number_name` makes, and takes attributes and age from its place in the queue, which it leaves. With
        `instead_of`, it replaces that document alone, and none that was put under the name meanwhile.

        Raises:
            Conflict: the claim is lost, because the file was detached, cancelled or taken by another process; or the
                document is not there any more that was to be replaced.
            NotFound: the base was deleted meanwhile.
            Unavailable: storing was interrupted for so long that it was given up. Retryable.
        """
        ...

    async def documents_from(self, source_ids: Sequence[str]) -> tuple[Document, ...]:
        """Return the documents that have one of these ids, or were read from a file that has; ordered by base."""
        ...

    async def find_outdated(self, versions: Mapping[str, int], *, reads_pictures: bool = False) -> tuple[str, ...]:
        """Return the ids of the documents whose text an earlier reader of their format has made; ordered.

        With `reads_pictures` also those of documents with pictures that were not read.
        """
        ...

    async def withdraw_file(self, file_id: str) -> None:
        """Delete what was made of an uploaded file, in all bases and in the queue of attached files."""
        ...

    async def find_document(self, base_id: str, name: str) -> Document | None:
        """Return a document, or None."""
        ...

    async def document_body(self, document_id: str) -> bytes:
        """Return the stored bytes.

        Raises:
            NotFound: the document was deleted meanwhile.
        """
        ...

    async def delete_document(self, base_id: str, name: str, source_id: str | None = None) -> bool:
        """Delete a document with its chunks and index entries; False when there was none.

        With a `source_id` none but the document of this source, whoever has put another one under its name.
        """
        ...

    async def documents(self, base_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Document, ...]:
        """Return up to `limit` documents ordered by name (code points), behind the document id `after`.

        Raises:
            NotFound: `after` names no document of this base.
        """
        ...

    async def count_documents(self, base_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the numbers of documents of these bases; a base without any is left out."""
        ...

    async def all_documents(self, base_ids: Sequence[str]) -> tuple[Document, ...]:
        """Return the documents of these bases, ordered by base id and name."""
        ...

    async def chunks(
        self, document_id: str, *, after: str | None = None, limit: int | None = None
    ) -> tuple[Chunk, ...]:
        """Return the chunks of a document in document order: up to `limit`, behind the chunk id `after`.

        Raises:
            NotFound: `after` names no chunk of this document.
        """
        ...

    async def token_counts(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the estimated tokens of the text of each of these documents, as counted when it was read."""
        ...


OpenFileIndexes = Callable[[str, str, Sequence[str]], Awaitable[frozenset[str]]]
"""Returns those of the file indexes of agents whose agent a user may use now, by the tenant and the id of the user.

Raises:
    Unavailable: the database is away. Retryable.
"""


LabelsOfTurns = Callable[[Sequence[str]], Awaitable[Mapping[str, Labels]]]
"""Returns the labels that turns have today, by their ids; a turn is left out that stands in no log.

Raises:
    Unavailable: the database is away. Retryable.
"""


class DescriptionObserver(Protocol):
    """Notified of descriptions that restricted members are not shown; it must not raise and must not block."""

    def texts_left_out(self, base_id: str, count: int) -> None:
        """Note that `count` texts of a base's description reveal its content or give instructions to a model."""
        ...
