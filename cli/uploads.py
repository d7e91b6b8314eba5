"""Bringing a base up to date with files: what the base has already is not sent again.

What has been sent is known from the base alone, by the digests of its documents. So a run that was broken off goes on
when it is started again, on another machine, too.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import file_digest
from pathlib import Path

from cli.advice import ExitCode
from cli.answers import Answer, strings_at, text_at
from cli.api import Api, segment
from cli.failures import CommandFailed, RequestRefused


@dataclass(frozen=True)
class LocalFile:
    """A file, and the name of its document: its path below the folder, parted by `/`."""

    name: str
    path: Path

    def state(self) -> tuple[int, int] | None:
        """Return by what its changes are seen: when it was written, and its size; None where it is gone."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def sha256(self) -> str:
        """Return the SHA-256 of its bytes, as the base shows it of a document."""
        with self.path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """Say whether a name, or that of a folder above it, fits a pattern as of a shell: `drafts`, `*.log`, `a/*.md`."""
    parts = name.split("/")
    paths = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
    return any(fnmatchcase(each, pattern.rstrip("/")) for pattern in patterns for each in (*parts, *paths))


def files_below(place: Path, excluded: Sequence[str] = ()) -> list[LocalFile]:
    """Return the files of a folder by name, or a single file; what begins with a dot, or is excluded, is left out.

    Raises:
        CommandFailed: there is no such place, or there is nothing in it.
    """
    if place.is_file():
        return [LocalFile(place.name, place)]
    if not place.is_dir():
        if place.parts[:1] in (("http:",), ("https:",)):
            message, mend = "An address is not read, only files and folders.", "download it first, then add the file"
            raise CommandFailed(message, ExitCode.WRONG_USE, mend)
        message, mend = f"{place}: there is no such file or folder", "name a file or a folder of this machine"
        raise CommandFailed(message, ExitCode.WRONG_USE, mend)
    found = sorted((file for file in _walk(place) if not is_excluded(file.name, excluded)), key=lambda file: file.name)
    if not found:
        mend = "files and folders whose names begin with a dot are left out"
        raise CommandFailed(f"{place}: holds no file", ExitCode.WRONG_USE, mend)
    return found


def _walk(folder: Path) -> Iterator[LocalFile]:
    """Yield regular files; links to folders are not followed, because they may lead round in a circle."""
    for parent, names_of_folders, names in os.walk(folder):
        names_of_folders[:] = [name for name in names_of_folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield LocalFile(path.relative_to(folder).as_posix(), path)


_UPLOADS_AT_ONCE = 4
_OF_ONE_FILE = (400, 413, 422)
_KIND_NOT_READ = "unsupported_value"


class UploadState(StrEnum):
    """What became of a file."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"


@dataclass(frozen=True)
class UploadedFile:
    """A file, what became of it, why it failed, and what of it was not read."""

    name: str
    state: UploadState
    reason: str = ""
    notes: Sequence[str] = ()

    def show(self) -> Answer:
        """Return it as an object for programs."""
        reason = self.reason or None
        return {"object": "file", "name": self.name, "state": self.state, "reason": reason, "notes": list(self.notes)}


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
            stored = await self._api.put_file(path, file.path)
        except OSError as error:
            return UploadedFile(file.name, UploadState.FAILED, error.strerror or type(error).__name__)
        except RequestRefused as refused:
            if refused.status not in _OF_ONE_FILE:
                raise
            state = UploadState.SKIPPED if _KIND_NOT_READ in refused.kinds else UploadState.FAILED
            return UploadedFile(file.name, state, refused.message)
        state = UploadState.CHANGED if file.name in self._known else UploadState.ADDED
        return UploadedFile(file.name, state, notes=strings_at(stored, "notes"))


def endings_of(files: Iterable[UploadedFile]) -> list[str]:
    """Return the endings of files, each once; a file without an ending stands with its whole name."""
    return sorted({Path(file.name).suffix.lower() or Path(file.name).name for file in files})


async def remove_documents(api: Api, base_id: str, names: Sequence[str], report: Report) -> None:
    """Remove documents; one that is gone already is as good as removed."""
    for name in names:
        try:
            await api.call("DELETE", f"/v1/knowledge_bases/{segment(base_id)}/documents/{segment(name)}")
        except RequestRefused as refused:
            if refused.status != 404:
                raise
        report(UploadedFile(name, UploadState.REMOVED))


def _first_failure(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the error that ended all uploads; several of them may have met it at once."""
    return errors.exceptions[0]
