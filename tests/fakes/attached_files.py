"""A reader of documents that notes what it reads, and stored files of users and agents."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.extraction.formats.reader import LibraryDocumentReader
from backend.extraction.ports import CutFile, ReadableFile
from backend.identity.domain import Caller
from backend.knowledge.domain.attachments import FileError
from backend.knowledge.domain.file_indexes import FileIndex, FileIndexState, IndexedFile
from backend.knowledge.domain.knowledge import Document
from shared.errors import NotFound
from shared.tokens import estimate_tokens


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


@dataclass
class FakeText:
    """A stored file as its text, or as what became of it."""

    name: str
    text: str
    state: FileIndexState = FileIndexState.READ


class FakeAttachedFiles:
    """Stored files of users: `FilesById`."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], FakeText] = {}

    async def find(self, caller: Caller, file_ids: Sequence[str]) -> Mapping[str, IndexedFile]:
        """Return the caller's files."""
        keys = [(caller.user_id, file_id) for file_id in file_ids]
        return {key[1]: shelved(*key, self.stored[key]) for key in keys if key in self.stored}

    async def text(self, file: IndexedFile) -> str:
        """Return the text of a file."""
        return _text(self.stored, file.document)


class FakeAgentFiles:
    """Stored files of agents by file index and id: `FilesOfAgents`; `reads` are the ids whose texts were asked for."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], FakeText] = {}
        self.reads: list[str] = []

    async def files(self, file_index: FileIndex, file_ids: Sequence[str]) -> tuple[IndexedFile, ...]:
        """Return the files of an agent."""
        return tuple(shelved(file_index.id, file_id, self.stored.get((file_index.id, file_id))) for file_id in file_ids)

    async def text(self, document: Document) -> str:
        """Return the text of a file."""
        self.reads.append(document.file_id or "")
        return _text(self.stored, document)


def shelved(owner: str, file_id: str, known: FakeText | None) -> IndexedFile:
    """Return a file as it stands in a file index."""
    if known is None:
        return IndexedFile(file_id, file_id, FileIndexState.DELETED)
    if known.state is not FileIndexState.READ:
        error = FileError(code="invalid_file", message=known.text) if known.text else None
        return IndexedFile(file_id, known.name, known.state, error=error)
    document = Document(
        id=f"doc_{owner}_{file_id}",
        knowledge_base_id=owner,
        name=known.name,
        media_type="text/plain",
        sha256="0",
        size_bytes=len(known.text.encode()),
        chunk_count=1,
        created_at=datetime(2026, 11, 22, tzinfo=UTC),
        file_id=file_id,
        filename=known.name,
    )
    return IndexedFile(file_id, known.name, FileIndexState.READ, estimate_tokens(known.text), document)


def _text(stored: Mapping[tuple[str, str], FakeText], document: Document | None) -> str:
    key = (document.knowledge_base_id, document.file_id or "") if document is not None else ("", "")
    if key not in stored:
        raise NotFound("There is no such file.")
    return stored[key].text
