"""Become a command that dies with the process that started it, even when that one is killed.

Run by path, in isolated mode, as `die_with_parent.py <parent pid> <user id or -> <kernel|watcher> command…`.

On Linux the kernel delivers the death (prctl(2), PR_SET_PDEATHSIG). Elsewhere a watcher holds the reading end of
a pipe whose writing end only the parent has: end of file means that the parent is gone.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_USAGE_EXIT_CODE = 64


def main(arguments: list[str]) -> None:
    """Drop privileges if asked, tie this process to its parent, become the command."""
    if len(arguments) < 4:
        sys.exit(_USAGE_EXIT_CODE)
    parent_pid, user, mechanism, *command = arguments
    if user != "-":
        _drop_privileges(int(user))
    if mechanism == "kernel":
        _die_by_kernel()
    else:
        _die_by_watcher()
    if os.getppid() != int(parent_pid):  # it died before we were tied to it
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  # no shell is wanted


def _drop_privileges(user_id: int) -> None:
    os.setgroups([])
    os.setgid(user_id)
    os.setuid(user_id)


def _die_by_kernel() -> None:
    # after setuid: a change of credentials clears the signal
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _die_by_watcher() -> None:
    watched_pid = os.getpid()
    if os.fork() == 0:
        _watch(watched_pid)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _watch(watched_pid: int) -> None:
    os.setsid()  # a signal to the group of the watched must not take the watcher first
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    while os.read(0, 1):
        pass
    if os.getppid() == watched_pid:  # else it has ended by itself and its number may be another's
        os.kill(watched_pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
