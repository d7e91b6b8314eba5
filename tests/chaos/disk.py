"""A small file system of its own for PostgreSQL, which can be full or stand still. Needs root and loop devices."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

IMAGE_BYTES = 2 << 30
FILLER = "filler"
LEFT_BYTES = 1 << 20
_PROGRAMS = ("mkfs.ext4", "mount", "umount", "fsfreeze", "truncate")


class DiskUnavailable(RuntimeError):
    """This machine does not let us mount a file system; the message says why."""


class SmallDisk:
    """An ext4 file system in a sparse file, mounted where it is wanted."""

    def __init__(self, image: Path, mounted_at: Path) -> None:
        self._image, self._at = image, mounted_at
        self._thaw: subprocess.Popen[bytes] | None = None

    def mount(self) -> None:
        """Make and mount it.

        Raises:
            DiskUnavailable: that is not possible here.
        """
        missing = [name for name in _PROGRAMS if shutil.which(name) is None]
        if os.geteuid() != 0 or missing:
            raise DiskUnavailable(f"not root, or without {', '.join(missing) or 'privileges'}")
        self._at.mkdir(parents=True, exist_ok=True)
        _run("truncate", "--size", str(IMAGE_BYTES), str(self._image))
        _run("mkfs.ext4", "-q", "-m", "0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self._at))

    def fill(self) -> None:
        """Leave no room; what was preallocated can still be written."""
        path = self._at / FILLER
        with path.open("wb") as filler, suppress(OSError):
            free = os.statvfs(self._at)
            os.posix_fallocate(filler.fileno(), 0, max(1, free.f_bavail * free.f_frsize - LEFT_BYTES))
        with path.open("ab", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(b"\0" * 4096)

    def empty(self) -> None:
        """Give the room back."""
        (self._at / FILLER).unlink(missing_ok=True)

    def freeze(self, seconds: float) -> None:
        """Let every write wait for so long; a process of its own thaws it, also when ours is killed meanwhile."""
        script = f"fsfreeze -f '{self._at}' && sleep {seconds}; fsfreeze -u '{self._at}'"
        self._thaw = subprocess.Popen(["sh", "-c", script], start_new_session=True, stderr=subprocess.DEVNULL)

    def unmount(self) -> None:
        """Take it away."""
        if self._thaw is not None:
            self._thaw.wait()
        subprocess.run(["umount", "--lazy", str(self._at)], check=False, capture_output=True)
        self._image.unlink(missing_ok=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DiskUnavailable(f"{command[0]}: {done.stderr.strip()}")
