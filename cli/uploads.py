"""Bringing a base up to date with files: what the base has already is not sent again.

What has been sent is known from the base alone, by the digests of its documents. So a run that was broken off goes on
when it is started again, on another machine, too.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cli.answers import Answer, text_at
from cli.api import Api, segment
from cli.failures import RequestRefused
from cli.folder import LocalFile

_UPLOADS_AT_ONCE = 4
_OF_ONE_FILE = (400, 413, 422)


class UploadState(StrEnum):
    """What became of a file."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True)
class UploadedFile:
    """A file, what became of it, and why it failed."""

    name: str
    state: UploadState
    reason: str = ""

    def shown(self) -> Answer:
        """Return it as an object for programs."""
        return {"object": "file", "name": self.name, "state": self.state, "reason": self.reason or None}


Report = Callable[[UploadedFile], None]


async def digests_of(api: Api, base_id: str) -> dict[str, str]:
    """Return the SHA-256 of each document of a base."""
    documents = api.items(f"/v1/knowledge_bases/{segment(base_id)}/documents")
    return {text_at(document, "name"): text_at(document, "sha256") async for document in documents}


class Uploads:
    """Uploads files into a base, some at a time; `report` is told of each."""

    def __init__(self, api: Api, base_id: str, known: Mapping[str, str], report: Report):
        self._api = api
        self._base_id = base_id
        self._known = known
        self._report = report
        self.counts: Counter[UploadState] = Counter()

    async def run(self, files: Sequence[LocalFile]) -> None:
        """Upload what the base does not have; the error of one file stops no other.

        Raises:
            CommandFailed: the backend cannot be reached, or refuses every file.
        """
        waiting = iter(files)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_UPLOADS_AT_ONCE):
                    group.create_task(self._take(waiting))
        except ExceptionGroup as group_of_errors:
            raise _first_failure(group_of_errors) from None

    async def _take(self, waiting: Iterator[LocalFile]) -> None:
        for file in waiting:
            uploaded = await self._upload(file)
            self.counts[uploaded.state] += 1
            self._report(uploaded)

    async def _upload(self, file: LocalFile) -> UploadedFile:
        try:
            digest = await asyncio.to_thread(file.sha256)
            if self._known.get(file.name) == digest:
                return UploadedFile(file.name, UploadState.UNCHANGED)
            path = f"/v1/knowledge_bases/{segment(self._base_id)}/documents/{segment(file.name)}"
            await self._api.put_file(path, file.path)
        except OSError as error:
            return UploadedFile(file.name, UploadState.FAILED, error.strerror or type(error).__name__)
        except RequestRefused as refused:
            if refused.status not in _OF_ONE_FILE:
                raise
            return UploadedFile(file.name, UploadState.FAILED, refused.message)
        return UploadedFile(file.name, UploadState.CHANGED if file.name in self._known else UploadState.ADDED)


def _first_failure(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the error that ended all uploads; several of them may have met it at once."""
    return errors.exceptions[0]
