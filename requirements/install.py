"""Make an environment and install a lock into it, once for each content of the lock.

Run as `python install.py run` (what the services need) or `python install.py dev` (that and the tests' tools), which
fill `.venv`; as `python install.py local-ocr` (an engine for pictures), which adds to it; as `python install.py docs`
(what builds the documentation), which fills `var/docs-environment`; as `python install.py cache-judges` (foreign
judges of request logs), which fills `var/cache-judges-environment`; or as `python install.py release` (what builds a
wheel and lists its parts), which fills `var/release-environment`. It needs nothing but the standard library and pip.
`milvus` adds the client of a search engine to `.venv`, `milvus-lite` makes a server for its tests.
`dev` holds all that `run` holds, at the same versions.
"""

import hashlib
import subprocess
import sys
import time
import tomllib
import venv
from importlib.util import find_spec
from pathlib import Path

_REQUIREMENTS = Path(__file__).resolve().parent
_ROOT = _REQUIREMENTS.parent
_PYTHON = _ROOT / ".venv" / "bin" / "python"
_APART = ("docs", "cache-judges", "milvus-lite", "release")
_OF_ITS_OWN = {name: _ROOT / "var" / f"{name}-environment" / "bin" / "python" for name in _APART}
"""Locks that are installed apart, with the interpreters that find them."""
# The kernel ends the name of an interpreter at a blank, and a folder may have one: to the shell the second line is a
# command, to Python the second and the third are a text.
_LAUNCHER = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command itself can say that it was stopped
sys.path.insert(0, {root!r})
from {module} import {function}

sys.exit({function}())
"""
_SATISFIED_BY = {
    "run": ("run", "dev"),
    "dev": ("dev",),
    "docs": ("docs",),
    "cache-judges": ("cache-judges",),
    "release": ("release",),
    "local-embeddings": ("local-embeddings", "dev"),
    "local-ocr": ("local-ocr",),
    "milvus": ("milvus",),
    "milvus-lite": ("milvus-lite",),
}
_WHERE_THERE_IS_A_WHEEL = ("--only-binary", ":all:", "--retries", "0", "--timeout", "15")
_OLDEST_PYTHON = (3, 11)


def main(lock_name: str) -> None:
    """Install the lock unless that has been done."""
    if sys.version_info[:2] < _OLDEST_PYTHON:
        sys.exit(f"Python 3.11 or later is needed, this is {sys.version.split()[0]}; name one with PYTHON=…")
    if not _is_satisfied(lock_name):
        _make_environment(_python(lock_name).parents[1])
        if returncode := _install(lock_name):
            sys.exit(returncode)
    if lock_name == "run" and not _is_satisfied("local-embeddings"):
        # a demo without it searches by words, and says so
        _install("local-embeddings", *_WHERE_THERE_IS_A_WHEEL)
    if lock_name not in _OF_ITS_OWN:
        write_launchers(_ROOT, _PYTHON, _PYTHON.parent)


def _is_satisfied(lock_name: str) -> bool:
    return any(_is_installed(name) for name in _SATISFIED_BY[lock_name])


def _python(lock_name: str) -> Path:
    return _OF_ITS_OWN.get(lock_name, _PYTHON)


def _make_environment(folder: Path) -> None:
    if not (folder / "bin" / "python").exists():
        # without ensurepip (Debian packages it apart) the pip of this Python installs from outside
        venv.create(folder, clear=True, with_pip=find_spec("ensurepip") is not None)


def _is_installed(lock_name: str) -> bool:
    stamp = _stamp(lock_name)
    return stamp.exists() and stamp.read_text(encoding="ascii") == _digest(lock_name)


def _install(lock_name: str, *more_options: str) -> int:
    started = time.monotonic()
    python = _python(lock_name)
    place = python.parents[1].relative_to(_ROOT)
    print(f"Installing requirements/{lock_name}.txt into {place}, once: this takes a minute or two", flush=True)
    # the lock is complete: nothing is left to resolve
    options = ("--no-deps", "--require-hashes", "--quiet", "--disable-pip-version-check", "--no-input", *more_options)
    shown = subprocess.DEVNULL if more_options else None  # its complaints are those of a failure that is none
    done = subprocess.run([*_pip(python), "install", *options, "-r", str(_lock(lock_name))], check=False, stderr=shown)
    if done.returncode == 0:
        _stamp(lock_name).write_text(_digest(lock_name), encoding="ascii")
        print(f"Installed in {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode


def write_launchers(project: Path, python: Path, folder: Path) -> None:
    """Write the commands of a project into a folder; they run its code where it lies, because it is not installed."""
    declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, place in declared["scripts"].items():
        module, _, function = place.partition(":")
        launcher = folder / name
        text = _LAUNCHER.format(python=python, root=str(project), module=module, function=function)
        launcher.write_text(text, encoding="utf-8")
        launcher.chmod(0o755)


def _pip(python: Path) -> list[str]:
    inside = subprocess.run([str(python), "-m", "pip", "--version"], check=False, capture_output=True)
    if inside.returncode == 0:
        return [str(python), "-m", "pip"]
    return [sys.executable, "-m", "pip", "--python", str(python)]


def _lock(lock_name: str) -> Path:
    return _REQUIREMENTS / f"{lock_name}.txt"


def _stamp(lock_name: str) -> Path:
    return _python(lock_name).parents[1] / f".installed-{lock_name}"


def _digest(lock_name: str) -> str:
    return hashlib.sha256(_lock(lock_name).read_bytes()).hexdigest()


if __name__ == "__main__":
    names = ("run", "dev", "docs", "cache-judges", "release", "local-ocr", "milvus", "milvus-lite")
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(f"usage: install.py {'|'.join(names)}")
    main(sys.argv[1])
