"""One contract for stored files as messages name them, and as agents have them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import pytest

from backend.files.domain import FilePurpose, FileQuota
from backend.files.services import Files, NewFile
from backend.files.sql.files import SqlFileStore
from backend.foundation.sql.chosen import open_database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.file_indexes import FileIndex, FileIndexState, file_index_of_agent
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.migrations.migrate import migrate
from backend.turns.ports.files_by_id import FilesById, FilesOfAgents
from backend.vector_stores.services.file_indexes import FileIndexes, UploadsById
from backend.vector_stores.services.reading import AttachedFileReading, ReadingTerms
from shared.errors import NotFound
from tests.fakes.attached_files import FakeAgentFiles, FakeAttachedFiles, FakeText, NotingReader
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.supervision import make_supervisor

ADA = Caller(user_id="ada", tenant="acme", role=KeyRole.USER)
BOB = Caller(user_id="bob", tenant="acme", role=KeyRole.USER)
FILE_INDEX = file_index_of_agent("acme", "agent_1")


class Cabinet(Protocol):
    @property
    def by_id(self) -> FilesById:
        """Files as messages name them."""
        ...

    @property
    def of_agents(self) -> FilesOfAgents:
        """Files as agents have them."""
        ...

    async def upload(self, name: str, text: str) -> str:
        """Store a file of Ada's, and let the agent have it."""
        ...

    async def delete(self, file_id: str) -> None:
        """Delete it."""
        ...


class FakeCabinet:
    def __init__(self) -> None:
        self.by_id, self.of_agents = FakeAttachedFiles(), FakeAgentFiles()

    async def upload(self, name: str, text: str) -> str:
        file_id = f"file-{len(self.by_id.stored)}"
        self.by_id.stored[ADA.user_id, file_id] = self.of_agents.stored[FILE_INDEX.id, file_id] = FakeText(name, text)
        return file_id

    async def delete(self, file_id: str) -> None:
        del self.by_id.stored[ADA.user_id, file_id], self.of_agents.stored[FILE_INDEX.id, file_id]


@dataclass
class SqlCabinet:
    files: Files
    knowledge: SqlKnowledgeStore
    by_id: UploadsById
    of_agents: FileIndexes

    async def upload(self, name: str, text: str) -> str:
        new = NewFile(name, FilePurpose.FOR_USERS, None, text.encode(), sha256(text.encode()).hexdigest())
        return (await self.files.upload(ADA, new, None)).id

    async def delete(self, file_id: str) -> None:
        await self.files.delete(ADA, file_id)
        await self.knowledge.withdraw_file(file_id)


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def cabinet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cabinet]:
    if request.param == "fake":
        yield FakeCabinet()
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    database = open_database(sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    clock, wake_signal, reader = FakeClock(), asyncio.Event(), NotingReader()
    store, knowledge = SqlFileStore(database, clock), knowledge_store(database, clock)
    attachments = SqlAttachmentStore(database, clock)
    reading = AttachedFileReading(
        attachments, store, knowledge, reader, wake_signal, ReadingTerms(is_only_replica=False)
    )
    file_indexes = FileIndexes(knowledge, attachments, store, wake_signal, clock)
    files = Files(store, clock, FileQuota())
    await migrate(database)
    running = make_supervisor().start("read_files", reading.step)
    try:
        yield SqlCabinet(files, knowledge, UploadsById(files, file_indexes), file_indexes)
    finally:
        running.cancel()
        await asyncio.wait([running])
        await reader.close()
        await database.close()


async def test_a_file_is_found_by_its_owner_alone_with_its_text(cabinet: Cabinet) -> None:
    first, second = await cabinet.upload("a.txt", "The Rhine."), await cabinet.upload("b.txt", "The Oder.")
    found = await cabinet.by_id.find(ADA, [second, "file-none", first])
    assert {key: (file.name, file.state) for key, file in found.items()} == {
        first: ("a.txt", FileIndexState.READ),
        second: ("b.txt", FileIndexState.READ),
    }
    assert [await cabinet.by_id.text(found[key]) for key in (first, second)] == ["The Rhine.", "The Oder."]
    assert found[first].tokens > 0
    assert await cabinet.by_id.find(BOB, [first]) == {}
    assert await cabinet.by_id.find(ADA, []) == {}


async def test_an_agent_has_its_files_in_order_and_those_that_are_gone_are_said(cabinet: Cabinet) -> None:
    first, second = await cabinet.upload("a.txt", "The Rhine."), await cabinet.upload("b.txt", "The Oder.")
    found = await cabinet.of_agents.files(FILE_INDEX, [second, "file-none", first])
    assert [file.state for file in found] == [FileIndexState.READ, FileIndexState.DELETED, FileIndexState.READ]
    document = found[0].document
    assert document is not None
    assert await cabinet.of_agents.text(document) == "The Oder."
    await cabinet.delete(second)
    (gone,) = await cabinet.of_agents.files(FILE_INDEX, [second])
    assert (gone.state, gone.document) == (FileIndexState.DELETED, None)
    with pytest.raises(NotFound):
        await cabinet.of_agents.text(document)
    assert await cabinet.of_agents.files(FileIndex("shelf_other", "acme"), []) == ()
