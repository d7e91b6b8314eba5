"""The port for files that are attached to bases, and for the queue of those that are to be read."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.attachments import (
    AttachedFile,
    AttachedQuery,
    Attachment,
    AttachmentClaim,
    FileBatch,
    FileCounts,
    FileError,
    TakenAttachment,
)
from backend.search.domain.filters import Attributes


class AttachmentStore(Protocol):
    """Attached files. The queue is durable, and each file in it is leased to one process at a time."""

    async def attach(
        self, attachments: Sequence[Attachment], batch: FileBatch | None = None, claim: KeyClaim | None = None
    ) -> None:
        """Queue files of one base, which become those of the batch, and store the claim.

        A file that is queued, or a document, already gets the attributes anew; one that failed or was cancelled is
        queued again.

        Raises:
            NotFound: the base was deleted meanwhile.
            KeyHeld: another request has used the key of the claim; there is no such batch.
        """
        ...

    async def list_attached(self, query: AttachedQuery) -> tuple[AttachedFile, ...]:
        """Return one file more than the limit, where there are so many, in the order of the page.

        Raises:
            NotFound: `after` or `before` names no file of the base.
        """
        ...

    async def find_attached(self, base_id: str, file_id: str) -> AttachedFile | None:
        """Return one file, or None; documents that were put under a name are found by their own ids."""
        ...

    async def set_attributes(self, base_id: str, file_id: str, attributes: Attributes) -> bool:
        """Replace the attributes of a file; False where there is none."""
        ...

    async def drop_attachment(self, base_id: str, file_id: str) -> None:
        """Take a file from the queue, whether it waits, is being read, failed or was cancelled."""
        ...

    async def find_batch(self, base_id: str, batch_id: str) -> tuple[FileBatch, FileCounts] | None:
        """Return a batch and the counts of its files; a file that was detached since is counted no more."""
        ...

    async def cancel_batch(self, base_id: str, batch_id: str) -> bool:
        """Cancel the files of a batch that have not become documents; False where there is no such batch."""
        ...

    async def file_counts(self, base_ids: Sequence[str]) -> Mapping[str, FileCounts]:
        """Count the files of bases."""
        ...

    async def note_active(self, base_ids: Sequence[str]) -> None:
        """Note that these bases were searched or changed now."""
        ...

    async def take(self, last_served: tuple[str, str] | None, lease_seconds: float) -> TakenAttachment | None:
        """Lease the file that is to be read next, or None where nothing waits.

        Users take turns: those who have no file leased come first, then those who have fewer; among equals the next one
        behind `last_served`, a pair of tenant and user, in the order of these pairs, and behind the last the first. Of
        one user the oldest file comes first.
        """
        ...

    async def renew(self, claim: AttachmentClaim, lease_seconds: float) -> bool:
        """Extend a lease; False where the file was taken by another process, detached or cancelled."""
        ...

    async def release(self, claim: AttachmentClaim, after_seconds: float) -> None:
        """Let the file be taken again, in so many seconds; the attempt does not count."""
        ...

    async def release_all(self) -> None:
        """Let all files be taken again: for the only process, when it starts."""
        ...

    async def fail(self, claim: AttachmentClaim, error: FileError) -> None:
        """Note why the file became no document; no effect where the claim is lost."""
        ...
