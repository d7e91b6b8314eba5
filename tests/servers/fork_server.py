"""`python -m tests.servers.fork_server MODULE…`: starts of programs that need these modules, forked from one process.

It imports the modules once and then does what each line of its input asks, as `ForkServer` writes them: a start,
which is a fork that runs a program as `python -m` would, or a look for the end of an earlier one.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import psutil

_PR_SET_PDEATHSIG = 1


class ForkedStart(NamedTuple):
    """One start: its module and arguments, all of its environment, where it works, and where its output goes."""

    command: Sequence[str]
    environment: dict[str, str]
    directory: str
    log: str


def main(modules: Sequence[str]) -> None:
    """Fork for each start that is asked for until the input ends; each fork goes on as what was asked for."""
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()
    start = _asked_start()
    if start is not None:
        _become(start)


def _asked_start() -> ForkedStart | None:
    """Return the start in each of the forks, None in this process when nothing more is asked for."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if "ended" in asked:
            _answer(_exit_code(asked["ended"]))
            continue
        if psutil.Process().num_threads() > 1:
            raise RuntimeError("an import has started a thread: it would be missing in a fork")
        own_pid = os.getpid()
        if os.fork() == 0:
            _tie_to(own_pid)
            return ForkedStart(**asked)
    return None


def _exit_code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _tie_to(parent_pid: int) -> None:
    """Lead a group of its own, die with the parent; then, and not before, let its number be known."""
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)
    _answer(os.getpid())


def _answer(value: int | None) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()


def _become(start: ForkedStart) -> None:
    log = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    for descriptor in (nothing, log):
        os.close(descriptor)
    os.chdir(start.directory)
    os.environ.clear()
    os.environ.update(start.environment)
    module, *sys.argv[1:] = start.command
    sys.path[0] = start.directory  # where `python -m` puts the directory in which it was started
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
