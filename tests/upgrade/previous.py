"""The code of the last release, taken from the history of this repository."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.servers.services import ROOT

NAMED_IN = Path(__file__).with_name("previous_release.txt")
_PARTS = ("backend", "chat_shell", "shared", "protos", "requirements", "pyproject.toml")


class NoPreviousRelease(AssertionError):
    """The history does not reach back to the last release."""


def previous_commit() -> str:
    """Return the commit of the last release."""
    return NAMED_IN.read_text(encoding="ascii").strip()


def unpack_previous_release(directory: Path) -> Path:
    """Write the last release's code into a directory and return it.

    Raises:
        NoPreviousRelease: this is no clone of the repository, or one without that commit.
    """
    return unpack_release(previous_commit(), directory)


def unpack_release(commit: str, directory: Path) -> Path:
    """Write the code of a commit, and what it needs to be installed, into a directory and return it.

    Raises:
        NoPreviousRelease: this is no clone of the repository, or one without that commit.
    """
    git = shutil.which("git")
    if git is None:
        raise NoPreviousRelease(f"git is not installed: commit {commit} of the last release cannot be read")
    archive = subprocess.run(
        [git, "-C", str(ROOT), "archive", "--format=tar", commit, *_PARTS], capture_output=True, check=False
    )
    if archive.returncode:
        raise NoPreviousRelease(
            f"commit {commit} of the last release is not in this clone:"
            f" fetch the whole history, for example with git fetch --unshallow"
            f" ({archive.stderr.decode(errors='replace').strip()})"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(directory, filter="data")
    return directory
