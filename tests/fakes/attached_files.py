"""A reader of documents that notes what it reads, and stored files of users."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from backend.identity.domain import Caller
from backend.knowledge.documents.reader import LibraryDocumentReader
from backend.knowledge.ports.knowledge import CutFile, ReadableFile
from backend.turns.ports.files_by_id import FileBytes
from shared.errors import NotFound


class NotingReader(LibraryDocumentReader):
    """Reads documents, and notes their types."""

    def __init__(self) -> None:
        super().__init__()
        self.types: list[str] = []

    @asynccontextmanager
    async def read(self, file: ReadableFile) -> AsyncGenerator[CutFile]:
        self.types.append(file.media_type)
        async with super().read(file) as cut:
            yield cut


class FakeAttachedFiles:
    """Stored files by user and id."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], FileBytes] = {}

    async def read(self, caller: Caller, file_id: str) -> FileBytes:
        if (caller.user_id, file_id) not in self.stored:
            raise NotFound("There is no such file.")
        return self.stored[caller.user_id, file_id]
