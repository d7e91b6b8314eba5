"""The ports for files that users have stored: those that they name in messages, and those of agents."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import FileIndex, IndexedFile
from backend.knowledge.domain.knowledge import Document


class FilesById(Protocol):
    """Stored files, each for its owner alone; each is read once, however often it is named."""

    async def find(self, caller: Caller, file_ids: Sequence[str]) -> Mapping[str, IndexedFile]:
        """Return by id those of the files that the caller has, with the states of their texts.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...

    async def text(self, file: IndexedFile) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        ...


class FilesOfAgents(Protocol):
    """Stored files in the file indexes of agents; whether a caller may use the agent is decided before."""

    async def files(self, file_index: FileIndex, file_ids: Sequence[str]) -> tuple[IndexedFile, ...]:
        """Return files with the states of their texts, in the order of their ids.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...

    async def text(self, document: Document) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        ...
