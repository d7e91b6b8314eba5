"""Files that users have uploaded, as messages and tools take them."""

from collections.abc import Mapping, Sequence

from backend.files.services import Files
from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import IndexedFile, file_index_of_user
from backend.vector_stores.services.file_indexes import WAIT_SECONDS, FileIndexes
from shared.errors import NotFound


class UploadsById:
    """The uploaded files of callers, with the texts that stand in the file index of each."""

    def __init__(self, files: Files, file_indexes: FileIndexes) -> None:
        self._files = files
        self._file_indexes = file_indexes

    async def find(
        self, caller: Caller, file_ids: Sequence[str], wait_seconds: float = WAIT_SECONDS
    ) -> Mapping[str, IndexedFile]:
        """Return by id those of the files that the caller has; those that are being read are waited for so long."""
        own = [file_id for file_id in file_ids if await self._files.has(caller, file_id)]
        file_index = file_index_of_user(caller.tenant, caller.user_id)
        found = await self._file_indexes.files(file_index, own, wait_seconds)
        return {file.file_id: file for file in found}

    async def text(self, file: IndexedFile) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        if file.document is None:
            raise NotFound("There is no such file.", param="file_id")
        return await self._file_indexes.text(file.document)
