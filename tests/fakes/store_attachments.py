"""An in-memory queue of attached files, and the `AttachmentStore` over it and over in-memory knowledge."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.attachments import (
    AttachedFile,
    AttachedQuery,
    AttachedStatus,
    Attachment,
    AttachmentClaim,
    FileBatch,
    FileCounts,
    FileError,
    TakenAttachment,
)
from backend.knowledge.domain.knowledge import Document
from backend.search.domain.filters import Attributes
from shared.clock import Clock
from shared.errors import Conflict, NotFound
from tests.fakes.store_claims import take_key

if TYPE_CHECKING:
    from tests.fakes.store_knowledge import FakeKnowledge


@dataclass
class _Queued:
    attachment: Attachment
    status: AttachedStatus = AttachedStatus.IN_PROGRESS
    attempts: int = 0
    fence: int = 0
    leased_until: datetime | None = None
    error: FileError | None = None


class FakeQueue:
    """Attachments by base and file."""

    def __init__(self) -> None:
        self.queued: dict[tuple[str, str], _Queued] = {}

    def add(self, attachments: Sequence[Attachment]) -> None:
        """Queue files that are not in the queue yet."""
        self.queued |= {(one.knowledge_base_id, one.file_id): _Queued(one) for one in attachments}

    def claimed(self, claim: AttachmentClaim) -> _Queued | None:
        """Return what a claim holds, or None where it is lost."""
        found = self.queued.get((claim.base_id, claim.file_id))
        is_held = found is not None and found.fence == claim.fence and found.status is AttachedStatus.IN_PROGRESS
        return found if is_held else None

    def complete(self, claim: AttachmentClaim) -> Attachment:
        """Take a file from the queue."""
        if (found := self.claimed(claim)) is None:
            raise Conflict("The claim is lost.")
        del self.queued[claim.base_id, claim.file_id]
        return found.attachment

    def forget(self, file_id: str) -> None:
        """Take a file from the queue of every base."""
        self.queued = {key: one for key, one in self.queued.items() if key[1] != file_id}


class FakeAttachments:
    """The `AttachmentStore`; a base is one of `knowledge`."""

    def __init__(self, knowledge: "FakeKnowledge", clock: Clock) -> None:
        self._knowledge = knowledge
        self._clock = clock
        self._batches: dict[str, tuple[FileBatch, list[str]]] = {}
        self.active: set[str] = set()

    @property
    def _queued(self) -> dict[tuple[str, str], _Queued]:
        return self._knowledge.queue.queued

    async def attach(
        self, attachments: Sequence[Attachment], batch: FileBatch | None = None, claim: KeyClaim | None = None
    ) -> None:
        """Queue files."""
        for one in attachments:
            if one.knowledge_base_id not in self._knowledge.base_ids:
                raise NotFound("There is no such base.")
            base_id, key = one.knowledge_base_id, (one.knowledge_base_id, one.file_id)
            known = self._queued.get(key)
            if self._knowledge.set_document_attributes(base_id, one.file_id, one.attributes):
                continue
            if known is not None and known.status is AttachedStatus.IN_PROGRESS:
                known.attachment = known.attachment.model_copy(update={"attributes": one.attributes})
            else:
                self._queued[key] = _Queued(one, fence=known.fence if known is not None else 0)
        take_key(self._knowledge.claims, claim)
        if batch is not None:
            self._batches[batch.id] = (batch, [one.file_id for one in attachments])

    async def list_attached(self, query: AttachedQuery) -> tuple[AttachedFile, ...]:
        """Return a page and one file more."""
        all_files = await self._files(query.base_id)
        cursor, name = (query.before, "before") if query.before is not None else (query.after, "after")
        if cursor is not None and cursor not in [one.id for one in all_files]:
            raise NotFound("There is no such file.", param=name)
        ordered = sorted(all_files, key=lambda one: (one.created_at, one.id), reverse=query.descending)
        if query.before is not None:
            ordered = ordered[::-1]
        start = next((place for place, one in enumerate(ordered, 1) if one.id == cursor), 0)
        ids = None if query.batch_id is None else self._batches[query.batch_id][1]
        wanted = [
            one for one in ordered[start:] if query.status in (None, one.status) and (ids is None or one.id in ids)
        ]
        return tuple(wanted[: query.limit + 1])

    async def find_attached(self, base_id: str, file_id: str) -> AttachedFile | None:
        """Return one file, or None."""
        return next((one for one in await self._files(base_id) if one.id == file_id), None)

    async def set_attributes(self, base_id: str, file_id: str, attributes: Attributes) -> bool:
        """Replace the attributes."""
        if (found := self._queued.get((base_id, file_id))) is not None:
            found.attachment = found.attachment.model_copy(update={"attributes": attributes})
            return True
        return self._knowledge.set_document_attributes(base_id, file_id, attributes)

    async def drop_attachment(self, base_id: str, file_id: str) -> None:
        """Take a file from the queue."""
        self._queued.pop((base_id, file_id), None)

    async def find_batch(self, base_id: str, batch_id: str) -> tuple[FileBatch, FileCounts] | None:
        """Return a batch and its counts."""
        if batch_id not in self._batches:
            return None
        batch, ids = self._batches[batch_id]
        if batch.knowledge_base_id != base_id:
            return None
        return batch, _counted([one for one in await self._files(base_id) if one.id in ids])

    async def cancel_batch(self, base_id: str, batch_id: str) -> bool:
        """Cancel what waits of a batch."""
        if await self.find_batch(base_id, batch_id) is None:
            return False
        batch, ids = self._batches[batch_id]
        self._batches[batch_id] = (batch.model_copy(update={"is_cancelled": True}), ids)
        for (of_base, file_id), one in self._queued.items():
            if of_base == base_id and file_id in ids and one.status is AttachedStatus.IN_PROGRESS:
                one.status = AttachedStatus.CANCELLED
        return True

    async def file_counts(self, base_ids: Sequence[str]) -> Mapping[str, FileCounts]:
        """Count the files of bases."""
        return {base_id: _counted(await self._files(base_id)) for base_id in base_ids}

    async def note_active(self, base_ids: Sequence[str]) -> None:
        """Note that bases are used."""
        self.active.update(base_ids)

    async def take(self, last_served: tuple[str, str] | None, lease_seconds: float) -> TakenAttachment | None:
        """Lease the next file of the user whose turn it is."""
        now = self._clock.now()
        waiting = [one for one in self._queued.values() if one.status is AttachedStatus.IN_PROGRESS]
        free = [one for one in waiting if one.leased_until is None or one.leased_until <= now]
        leased = Counter(_user(one) for one in waiting if one not in free)
        free.sort(key=lambda one: (one.attachment.created_at, one.attachment.file_id))
        last = last_served or ("", "")
        free.sort(key=lambda one: (leased[_user(one)], _user(one) <= last, _user(one)))
        if not free:
            return None
        first = free[0]
        first.attempts, first.fence = first.attempts + 1, first.fence + 1
        first.leased_until = now + timedelta(seconds=lease_seconds)
        its = first.attachment
        return TakenAttachment(its, AttachmentClaim(its.knowledge_base_id, its.file_id, first.fence), first.attempts)

    async def renew(self, claim: AttachmentClaim, lease_seconds: float) -> bool:
        """Extend a lease."""
        if (found := self._knowledge.queue.claimed(claim)) is None:
            return False
        found.leased_until = self._clock.now() + timedelta(seconds=lease_seconds)
        return True

    async def release(self, claim: AttachmentClaim, after_seconds: float) -> None:
        """Give a lease back."""
        if await self.renew(claim, after_seconds):
            found = self._queued[claim.base_id, claim.file_id]
            found.fence, found.attempts = found.fence + 1, found.attempts - 1

    async def release_all(self) -> None:
        """Give all leases back."""
        for one in self._queued.values():
            one.leased_until = None

    async def fail(self, claim: AttachmentClaim, error: FileError) -> None:
        """Note why a file became no document."""
        if (found := self._knowledge.queue.claimed(claim)) is not None:
            found.status, found.error = AttachedStatus.FAILED, error

    async def _files(self, base_id: str) -> list[AttachedFile]:
        stored = [_of_document(one) for one in await self._knowledge.all_documents([base_id])]
        return stored + [_of_queued(one) for (of_base, _), one in self._queued.items() if of_base == base_id]


def _user(one: _Queued) -> tuple[str, str]:
    return (one.attachment.tenant, one.attachment.user_id)


def _of_document(document: Document) -> AttachedFile:
    return AttachedFile(
        id=document.source_id,
        knowledge_base_id=document.knowledge_base_id,
        status=AttachedStatus.COMPLETED,
        created_at=document.created_at,
        size_bytes=document.size_bytes,
        attributes=document.attributes,
        error=None,
        document_name=document.name,
    )


def _of_queued(one: _Queued) -> AttachedFile:
    return AttachedFile(
        id=one.attachment.file_id,
        knowledge_base_id=one.attachment.knowledge_base_id,
        status=one.status,
        created_at=one.attachment.created_at,
        size_bytes=0,
        attributes=one.attachment.attributes,
        error=one.error,
        document_name=None,
    )


def _counted(files: Sequence[AttachedFile]) -> FileCounts:
    by_status = Counter(one.status.value for one in files)
    active_at = max((one.created_at for one in files), default=None)
    return FileCounts(size_bytes=sum(one.size_bytes for one in files), active_at=active_at, **by_status)
