"""Lock the folder of a demo, and make it private to its user."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_NAME = "demo.lock"


class FolderTaken(RuntimeError):
    """The folder cannot be used; the message says why."""


@contextmanager
def locked_folder(var: Path) -> Generator[None]:
    """Create the folder, make it private, and lock it; the kernel releases the lock when this process ends.

    Two demos in one folder would write the same SQLite file and close each other's running turns as lost.

    Raises:
        FolderTaken: another process holds it, or it cannot be made; the message says what to do.
    """
    try:
        var.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise FolderTaken(f"{var} is a file, and the demo needs a folder of that name; move the file away") from None
    except OSError as error:
        raise FolderTaken(f"the folder {var} cannot be made: {error.strerror}; start it in a folder of yours") from None
    with suppress(PermissionError):  # the folder belongs to another user
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
