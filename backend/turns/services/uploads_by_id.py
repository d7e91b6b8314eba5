"""Files that users have uploaded, as messages take them."""

from collections.abc import Mapping, Sequence

from backend.files.services import Files
from backend.identity.domain import Caller
from backend.knowledge.domain.shelves import ShelvedFile, shelf_of_user
from backend.vector_stores.services.shelves import Shelves
from shared.errors import NotFound


class UploadsById:
    """The uploaded files of callers, with the texts that stand on the shelf of each."""

    def __init__(self, files: Files, shelves: Shelves) -> None:
        self._files = files
        self._shelves = shelves

    async def find(self, caller: Caller, file_ids: Sequence[str]) -> Mapping[str, ShelvedFile]:
        """Return by id those of the files that the caller has."""
        his = [file_id for file_id in file_ids if await self._has(caller, file_id)]
        found = await self._shelves.files(shelf_of_user(caller.tenant, caller.user_id), his)
        return {file.file_id: file for file in found}

    async def text(self, file: ShelvedFile) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        if file.document is None:
            raise NotFound("There is no such file.", param="file_id")
        return await self._shelves.text(file.document)

    async def _has(self, caller: Caller, file_id: str) -> bool:
        try:
            await self._files.find(caller, file_id)
        except NotFound:
            return False
        return True
