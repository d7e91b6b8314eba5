"""The files of a folder, and what tells whether a base has one of them already."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from cli.exit_codes import ExitCode
from cli.failures import CommandFailed


@dataclass(frozen=True)
class LocalFile:
    """A file, and the name of its document: its path below the folder, parted by `/`."""

    name: str
    path: Path

    def sha256(self) -> str:
        """Return the SHA-256 of its bytes, as the base shows it of a document."""
        with self.path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()


def files_below(place: Path) -> list[LocalFile]:
    """Return the files of a folder by name, or a single file; what begins with a dot is left out.

    Raises:
        CommandFailed: there is no such place, or there is nothing in it.
    """
    if place.is_file():
        return [LocalFile(place.name, place)]
    if not place.is_dir():
        raise CommandFailed(f"{place}: there is no such file or folder", ExitCode.WRONG_USE)
    found = sorted(_walk(place), key=lambda file: file.name)
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
