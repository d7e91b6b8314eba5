"""File indexes: uploaded files are read once by the readers of attached files, and their texts stay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256

import pytest

from backend.files.domain import FilePurpose, FileQuota
from backend.files.services import Files, NewFile
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.attachments import AttachedQuery
from backend.knowledge.domain.file_indexes import (
    FILE_INDEX_OWNER,
    FileIndex,
    FileIndexState,
    file_index_of_agent,
    file_index_of_user,
)
from backend.vector_stores.services.file_indexes import FileIndexes, UploadsById
from backend.vector_stores.services.reading import AttachedFileReading, ReadingTerms
from shared.errors import NotFound
from tests.fakes.attached_files import NotingReader
from tests.fakes.clock import FakeClock
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_files import FakeFiles
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS

ADA = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
BOB = Caller(user_id="bob", tenant="default", role=KeyRole.USER)
RIVERS = b"# Rivers\n\nThe Rhine rises in the Alps."
FILE_INDEX = FileIndex("shelf_one", "default")


@dataclass
class Library:
    knowledge: FakeKnowledge
    attachments: FakeAttachments
    store: FakeFiles
    files: Files
    reader: NotingReader
    reading: AttachedFileReading
    file_indexes: FileIndexes

    async def upload(self, caller: Caller = ADA, name: str = "rivers.md", body: bytes = RIVERS) -> str:
        new = NewFile(name, FilePurpose.FOR_USERS, None, body, sha256(body).hexdigest())
        return (await self.files.upload(caller, new, None)).id


def new_library() -> Library:
    clock, wake_signal, knowledge, store, reader = (
        FakeClock(),
        asyncio.Event(),
        FakeKnowledge(),
        FakeFiles(),
        NotingReader(),
    )
    attachments = FakeAttachments(knowledge, clock)
    return Library(
        knowledge,
        attachments,
        store,
        Files(store, clock, FileQuota()),
        reader,
        AttachedFileReading(attachments, store, knowledge, reader, wake_signal, ReadingTerms(is_only_replica=False)),
        FileIndexes(knowledge, attachments, store, wake_signal, clock),
    )


@asynccontextmanager
async def open_library() -> AsyncGenerator[Library]:
    """A library whose files are read."""
    library = new_library()
    readers = [make_supervisor().start("read_files", library.reading.step) for _ in range(2)]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield library
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        await library.reader.close()


async def test_a_file_is_read_once_however_often_and_by_how_many_it_is_asked_for() -> None:
    async with open_library() as library:
        file_id = await library.upload()
        asked = [library.file_indexes.files(FILE_INDEX, [file_id]) for _ in range(5)]
        found = [file for files in await asyncio.gather(*asked) for file in files]
        (again,) = await library.file_indexes.files(FILE_INDEX, [file_id])
        assert {file.state for file in (*found, again)} == {FileIndexState.READ}
        assert again.document is not None
        assert (again.name, again.tokens > 5) == ("rivers.md", True)
        assert await library.file_indexes.text(again.document) == RIVERS.decode()
        assert library.reader.types == ["text/markdown"]


async def test_files_come_in_the_order_of_their_ids_with_their_states() -> None:
    async with open_library() as library:
        good, bad = await library.upload(), await library.upload(name="a.docx", body=b"no archive")
        found = await library.file_indexes.files(FILE_INDEX, [bad, "file-none", good])
        assert [file.state for file in found] == [
            FileIndexState.UNREADABLE,
            FileIndexState.DELETED,
            FileIndexState.READ,
        ]
        assert found[0].error is not None
        assert "a.docx" in found[0].error.message


async def test_a_turn_does_not_wait_for_ever() -> None:
    library = new_library()
    file_id = await library.upload()
    (file,) = await library.file_indexes.files(FILE_INDEX, [file_id], wait_seconds=0.05)
    assert (file.state, file.name) == (FileIndexState.BEING_READ, "rivers.md")
    await library.reading.step()
    (file,) = await library.file_indexes.files(FILE_INDEX, [file_id], wait_seconds=0.05)
    assert file.state is FileIndexState.READ


async def test_a_file_index_stands_in_nobodys_list() -> None:
    async with open_library() as library:
        await library.file_indexes.files(FILE_INDEX, [await library.upload()])
        assert await library.knowledge.bindings("default", ADA.user_id, None) == ()
        assert list(await library.knowledge.members(FILE_INDEX.id)) == [FILE_INDEX_OWNER]
        assert not FILE_INDEX_OWNER.isprintable()


async def test_with_a_file_its_text_is_deleted() -> None:
    async with open_library() as library:
        file_id = await library.upload()
        (file,) = await library.file_indexes.files(FILE_INDEX, [file_id])
        await library.files.delete(ADA, file_id)
        await library.knowledge.withdraw_file(file_id)
        (gone,) = await library.file_indexes.files(FILE_INDEX, [file_id])
        assert gone.state is FileIndexState.DELETED
        assert file.document is not None
        with pytest.raises(NotFound):
            await library.file_indexes.text(file.document)


async def test_what_an_agent_has_no_more_is_found_no_more() -> None:
    async with open_library() as library:
        kept, left = await library.upload(), await library.upload(name="lakes.md")
        await library.file_indexes.files(FILE_INDEX, [kept, left])
        waiting = await library.upload(name="seas.md")
        await library.file_indexes.put(FILE_INDEX, [waiting])
        await library.file_indexes.keep_only(FILE_INDEX, [kept])
        found = await library.attachments.list_attached(AttachedQuery(FILE_INDEX.id, 10, descending=False))
        assert [file.id for file in found] == [kept]
        await library.file_indexes.clear(FILE_INDEX)
        assert library.knowledge.base_ids == []


async def test_two_peoples_files_never_mix() -> None:
    async with open_library() as library:
        uploads = UploadsById(library.files, library.file_indexes)
        file_id = await library.upload()
        assert list(await uploads.find(ADA, [file_id])) == [file_id]
        assert await uploads.find(BOB, [file_id]) == {}
        assert await uploads.find(Caller(user_id="ada", tenant="other", role=KeyRole.USER), [file_id]) == {}
        assert library.knowledge.base_ids == [file_index_of_user("default", "ada").id]


def test_each_user_and_agent_has_a_file_index_of_their_own() -> None:
    users = [("a", "b"), ("a b", ""), ("", "a b"), ("b", "a")]
    assert len({file_index_of_user(*user).id for user in users} | {file_index_of_agent("a", "agent_b").id}) == 5
