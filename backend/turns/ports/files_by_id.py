"""The port for files that users have stored and name in messages."""

from typing import NamedTuple, Protocol

from backend.identity.domain import Caller


class FileBytes(NamedTuple):
    """A file with its bytes; `media_type` is what its owner declared, or None."""

    name: str
    media_type: str | None
    body: bytes | bytearray


class FilesById(Protocol):
    """Stored files, each for its owner alone."""

    async def read(self, caller: Caller, file_id: str) -> FileBytes:
        """Return a file.

        Raises:
            NotFound: there is no such file, or it is somebody else's.
        """
        ...
