"""Reading attached files: what ends a reading early, and who learns of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from backend.extraction.ports import DocumentReader, ReadableFile
from backend.files.domain import FilePurpose, FileQuota, StoredFile
from backend.knowledge.domain.attachments import AttachedStatus, Attachment, AttachmentClaim
from backend.vector_stores.services.reading import AttachedFileReading, ReadingTerms
from shared.errors import Unavailable
from tests.contract.knowledge_cases import make_base
from tests.fakes.clock import FakeClock
from tests.fakes.driver_errors import all_errors
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_files import FakeFiles
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS

T0 = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
ERRORS = [error for error in all_errors() if not isinstance(error, asyncio.CancelledError)]


class EndlessFiles(FakeFiles):
    """Files whose bytes never come to their end."""

    async def pieces(self, file_id: str) -> AsyncIterator[bytes]:
        """Yield one piece and wait for ever."""
        yield b"x"
        await asyncio.Event().wait()


class RefusedRenewals(FakeAttachments):
    """A queue whose leases cannot be renewed, for a reason that no port names."""

    def __init__(self, knowledge: FakeKnowledge, error: BaseException) -> None:
        super().__init__(knowledge, FakeClock())
        self._error = error

    async def renew(self, claim: AttachmentClaim, lease_seconds: float) -> bool:
        """Refuse."""
        raise self._error


class NoPlace:
    """A reader of documents that has no place for any, and counts who asks."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_asked = asyncio.Event()

    def read(self, file: ReadableFile) -> Any:
        """Refuse."""
        self.asked += 1
        self.is_asked.set()
        raise Unavailable("Too many documents are waiting to be read.")


async def attached(queue: FakeAttachments, knowledge: FakeKnowledge, files: FakeFiles, file_id: str = "file-a") -> None:
    """Queue one uploaded file for a base."""
    base, body = make_base(), b"text"
    if base.id not in knowledge.base_ids:
        await knowledge.create_base(base, "ann")
    file = StoredFile(
        id=file_id,
        tenant=base.tenant,
        user_id="ann",
        filename="a.txt",
        purpose=FilePurpose.ASSISTANTS,
        content_type=None,
        size_bytes=len(body),
        sha256="0",
        created_at=T0,
    )
    await files.add(file, body, FileQuota())
    queued = Attachment(
        knowledge_base_id=base.id,
        file_id=file.id,
        tenant=base.tenant,
        user_id="ann",
        filename=file.filename,
        attributes={},
        created_at=T0,
    )
    await queue.attach([queued])


@pytest.mark.parametrize("error", ERRORS[:: len(ERRORS) // 12], ids=lambda error: type(error).__name__)
async def test_what_ends_the_renewals_is_told_to_who_counts_failures(error: BaseException) -> None:
    knowledge, files = FakeKnowledge(), EndlessFiles()
    queue = RefusedRenewals(knowledge, error)
    await attached(queue, knowledge, files)
    terms = ReadingTerms(is_only_replica=False, renew_seconds=0.0)
    reading = AttachedFileReading(queue, files, knowledge, cast(Any, None), asyncio.Event(), terms)
    with pytest.raises(type(error)):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reading.step()
    (found,) = knowledge.queue.queued.values()
    assert found.status is AttachedStatus.IN_PROGRESS


async def test_a_reader_that_finds_no_place_does_not_fetch_one_file_after_the_other() -> None:
    knowledge, files, reader = FakeKnowledge(), FakeFiles(), NoPlace()
    queue = FakeAttachments(knowledge, FakeClock())
    for number in range(20):
        await attached(queue, knowledge, files, f"file-{number}")
    terms = ReadingTerms(is_only_replica=False, pause_seconds=600.0)
    reading = AttachedFileReading(queue, files, knowledge, cast(DocumentReader, reader), asyncio.Event(), terms)
    repeating = make_supervisor().start("read_files", reading.step)
    await reader.is_asked.wait()
    for _ in range(200):
        await asyncio.sleep(0)
    assert reader.asked == 1
    assert all(one.attempts == 0 for one in knowledge.queue.queued.values())
    repeating.cancel()
    await asyncio.wait([repeating])
