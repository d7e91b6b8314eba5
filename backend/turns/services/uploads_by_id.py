"""Files that users have uploaded, as messages take them."""

from backend.files.services import Files, whole_file
from backend.identity.domain import Caller
from backend.turns.ports.files_by_id import FileBytes


class UploadsById:
    """The uploaded files of callers, whole in memory: none is larger than the body of a request."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def read(self, caller: Caller, file_id: str) -> FileBytes:
        """Return a file of the caller.

        Raises:
            NotFound: the caller has no such file.
        """
        file = await self._files.find(caller, file_id)
        return FileBytes(file.filename, file.content_type, await whole_file(self._files.pieces(file)))
