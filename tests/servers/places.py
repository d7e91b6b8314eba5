"""Where servers keep their files: found by name, readable by them, gone with the run."""

import contextlib
import importlib.util
import os
import shutil
import stat
import tempfile
from pathlib import Path

_PREFIX = "ballast-test-"


def package_directory(name: str) -> Path:
    """Return the directory of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"package {name} is not installed")
    return Path(spec.origin).parent


def new_directory(purpose: str) -> Path:
    """Make a directory that any user may enter; sweep away those that killed runs have left."""
    root = next(place for place in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")) if open_to_all(place))
    for leftover in root.glob(f"{_PREFIX}*"):
        if not pid_runs(int(leftover.name.split("-")[2])):
            shutil.rmtree(leftover, ignore_errors=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{purpose}-", dir=root))
    directory.chmod(0o755)
    return directory


def open_to_all(place: Path) -> bool:
    """Whether any user may enter the place, that is, whether all its parents let them."""
    resolved = place.resolve()
    return all(directory.stat().st_mode & stat.S_IXOTH for directory in (resolved, *resolved.parents))


def pid_runs(pid: int) -> bool:
    """Whether a process of that number exists."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
