"""Child processes that never outlive the one that started them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
_POLL_SECONDS = 0.02
_LOG_TAIL_CHARACTERS = 4000
_SIGNAL_NAMES = {number.value: number.name for number in signal.Signals}

Mechanism = Literal["kernel", "watcher"]
NATIVE_MECHANISM: Mechanism = "kernel" if sys.platform == "linux" else "watcher"


class ChildFailed(RuntimeError):
    """A child ended before it was ready, or was not ready in time; the message ends with its last log lines."""


@dataclass(frozen=True)
class ChildSpec:
    """What to start. Output of both kinds is appended to `log_path`; `user_id` needs root."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    log_path: Path
    user_id: int | None = None
    mechanism: Mechanism = NATIVE_MECHANISM


class Started(Protocol):
    """What `Child` asks of a started process: a part of `subprocess.Popen`."""

    pid: int

    @property
    def stdin(self) -> IO[bytes] | None:
        """Its input, where it is a pipe."""
        ...

    def poll(self) -> int | None:
        """Return its exit code, negative after a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended; `subprocess.TimeoutExpired` is raised when it has not in time."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal to it; no effect when it has ended."""
        ...


class Child:
    """One child in a session of its own, so that a Ctrl-C in the terminal reaches only its parent."""

    def __init__(self, spec: ChildSpec):
        self.spec = spec
        self._popen: Started | None = None

    @property
    def pid(self) -> int:
        """The operating system's number of it."""
        return self._start().pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self._start().poll()

    @property
    def ending(self) -> str:
        """How it ended, in words; a signal by its name."""
        code = self.exit_code
        if code is None or code >= 0:
            return f"{self.spec.name} ended with {code}"
        return f"{self.spec.name} was killed ({_SIGNAL_NAMES.get(-code, f'signal {-code}')})"

    def start(self) -> None:
        """Start it; returns before it is ready.

        Must run in the main thread: Linux ties a child to the thread that started it, not to the process.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a child dies with the thread that starts it: start it in the main thread")
        self.spec.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._popen = self._spawn()

    def _spawn(self) -> Started:
        """Spawn the command, tied to this process, in a session of its own."""
        user = "-" if self.spec.user_id is None else str(self.spec.user_id)
        wrapper = [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), user, self.spec.mechanism]
        with self.spec.log_path.open("ab") as log:
            return subprocess.Popen(
                [*wrapper, *self.spec.command],
                env=dict(self.spec.environment),
                cwd=self.spec.directory,
                stdin=subprocess.DEVNULL if self.spec.mechanism == "kernel" else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Ask `ready` again and again until it says yes.

        Raises:
            ChildFailed: it ended, or time is over.
        """
        give_up = time.monotonic() + timeout_seconds
        while not ready():
            if self.exit_code is not None:
                raise ChildFailed(f"{self.ending}\n{self.log_tail()}")
            if time.monotonic() > give_up:
                raise ChildFailed(f"{self.spec.name} is not ready after {timeout_seconds} s\n{self.log_tail()}")
            time.sleep(_POLL_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it; no effect when it has ended."""
        self._start().send_signal(number)

    def stop(self, timeout_seconds: float = 10, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, kill it when it has not in time, and return its exit code; repeatable."""
        self.send(number)
        return self.wait_or_kill(timeout_seconds)

    def wait_or_kill(self, timeout_seconds: float) -> int:
        """Wait for its end, kill it when time is over, and return its exit code; repeatable."""
        popen = self._start()
        try:
            popen.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        return self._reap(popen)

    def kill(self) -> None:
        """Kill it and its group at once, and reap it; repeatable."""
        popen = self._start()
        if popen.poll() is None:
            os.killpg(popen.pid, signal.SIGKILL)
        self._reap(popen)

    def log(self) -> str:
        """All that it has printed so far, over all its starts."""
        return self.spec.log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        """The last lines of its log; of a line that is longer than all it may be, the end."""
        log = self.log()
        earliest = max(0, len(log) - _LOG_TAIL_CHARACTERS)
        line_end = log.find("\n", earliest - 1, len(log) - 1) if earliest else -1
        return log[max(earliest, line_end + 1) :]

    def _start(self) -> Started:
        if self._popen is None:
            raise RuntimeError(f"{self.spec.name} was never started")
        return self._popen

    @staticmethod
    def _reap(popen: Started) -> int:
        code = popen.wait()
        if popen.stdin is not None:
            popen.stdin.close()
        return code
