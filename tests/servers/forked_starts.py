"""`python -m tests.servers.forked_starts SERVICE STARTS`: starts of a service that end soon, forked from one process.

STARTS is a file with what `forked_starts` was given. Importing a service takes longer than all that these starts do.
"""

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.servers.services import Launch, service_environment

BROKEN = 70
"""The exit code of a start that raised what its service does not handle."""


class ForkedStart(NamedTuple):
    """One start: its arguments, None for a service that takes none; its directory, where its log goes."""

    arguments: Sequence[str] | None
    settings: dict[str, str]
    directory: str


class EndedStart(NamedTuple):
    """How it ended, and all that it printed."""

    exit_code: int
    log: str


def forked_starts(launch: Launch, directory: Path, service: str, starts: Sequence[ForkedStart]) -> list[EndedStart]:
    """Start the service with all of these at once, and return how each ended, in order; none may outlive a minute."""
    given = directory / f"{service}.json"
    given.write_text(json.dumps(starts), encoding="utf-8")
    forking = launch("tests.servers.forked_starts", service, str(given), settings={}, directory=directory / service)
    if forking.wait_or_kill(60) != 0:
        raise RuntimeError(f"{forking.ending}\n{forking.log()}")
    codes: list[int] = json.loads(forking.log())
    logs = [(Path(start.directory) / "log").read_text(encoding="utf-8", errors="replace") for start in starts]
    return [EndedStart(*ended) for ended in zip(codes, logs, strict=True)]


def main(service: str, path: str) -> None:
    importlib.import_module(f"{service}.app")
    entry = importlib.import_module(f"{service}.__main__").main
    starts = [ForkedStart(*each) for each in json.loads(Path(path).read_text(encoding="utf-8"))]
    pids = [_fork(entry, start) for start in starts]
    sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]))


def _fork(entry: Callable[..., int], start: ForkedStart) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = BROKEN
    try:
        code = _run(entry, start)
    finally:
        if code == BROKEN:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # what stands above in this stack belongs to the first process


def _run(entry: Callable[..., int], start: ForkedStart) -> int:
    os.chdir(start.directory)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    environment = service_environment(start.settings)
    os.environ.clear()
    os.environ.update(environment)
    return entry(*([start.arguments] if start.arguments is not None else []))


if __name__ == "__main__":
    main(*sys.argv[1:])
