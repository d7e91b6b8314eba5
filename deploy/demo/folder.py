"""The folder of a demo: one demo at a time, and nobody else's eyes."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_NAME = "demo.lock"


class FolderTaken(RuntimeError):
    """Another demo runs in this folder; the message names its process."""


@contextmanager
def alone_in(var: Path) -> Generator[None]:
    """Make the folder, close it to other users, and hold it; the kernel lets go when this process ends, however.

    Two demos would write one SQLite file, and each would take the other's running turns for lost ones.

    Raises:
        FolderTaken: another process holds it.
    """
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(PermissionError):  # it is another user's, who decides
        var.chmod(0o700)
    descriptor = os.open(var / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read().strip() or "unknown"
            raise FolderTaken(f"a demo already runs in this folder (process {holder}); stop it first") from None
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield
