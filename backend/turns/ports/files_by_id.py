"""The ports for files that users have stored: those that they name in messages, and those of agents."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.domain.shelves import Shelf, ShelvedFile


class FilesById(Protocol):
    """Stored files, each for its owner alone; each is read once, however often it is named."""

    async def find(self, caller: Caller, file_ids: Sequence[str]) -> Mapping[str, ShelvedFile]:
        """Return by id those of the files that the caller has, with the states of their texts.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...

    async def text(self, file: ShelvedFile) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        ...


class FilesOfAgents(Protocol):
    """Stored files on the shelves of agents; whether a caller may use the agent is decided before."""

    async def files(self, shelf: Shelf, file_ids: Sequence[str]) -> tuple[ShelvedFile, ...]:
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
