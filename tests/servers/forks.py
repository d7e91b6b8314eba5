"""Starts of our services without their imports, which take longer than all else that a start does."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from deploy.demo.children import DIE_WITH_PARENT, NATIVE_MECHANISM, ChildSpec
from tests.servers.fork_server import ForkedStart

PRELOADED: dict[str, tuple[str, ...]] = {
    "backend": (
        "backend.app",
        "backend.foundation.sql.postgres",
        "backend.foundation.sql.sqlite",
        "backend.migrations.chosen",
        "backend.chat_shell_client.grpc_client",
        "backend.foundation.redis.client",
        "uvloop",
    ),
    "chat_shell": ("chat_shell.app", "uvloop"),
    "model": ("tests.fakes.model_server.server",),
    "tools": ("tests.servers.tool_server",),
}
"""What each of the processes imports from which is forked. Nothing of it may start a thread."""

_FORKED_FROM = {
    "backend": "backend",
    "tests.leaks.loud backend": "backend",
    "chat_shell": "chat_shell",
    "tests.leaks.loud chat_shell": "chat_shell",
    "tests.leaks.ungated": "chat_shell",
    "tests.fakes.model_server": "model",
    "tests.servers.tool_server": "tools",
}
"""By the beginning of the command, without the interpreter."""

_READ_BY_OUR_CODE = ("BACKEND_", "CHAT_SHELL_", "SERVICE_", "OTEL_", "KEY")
_POLL_SECONDS = 0.01


class Forked:
    """A forked start, with as much of `subprocess.Popen` as `Child` needs."""

    stdin = None

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server

    def poll(self) -> int | None:
        """Return its exit code, negative after a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.asked({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not in time.
        """
        give_up = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if give_up is not None and timeout is not None and time.monotonic() > give_up:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_POLL_SECONDS)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal to it; no effect when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class ForkServer:
    """A process from which others are forked; all of them die with it."""

    def __init__(self, preloaded: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
        wrapper = [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), "-", NATIVE_MECHANISM]
        self._asking = threading.Lock()
        self._popen = subprocess.Popen(
            [*wrapper, sys.executable, "-m", "tests.servers.fork_server", *preloaded],
            env=environment,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )

    def start(self, command: Sequence[str], spec: ChildSpec) -> Forked:
        """Fork one that runs a module with its arguments; returns when signals to its group reach it."""
        start = ForkedStart(command, dict(spec.environment), str(spec.directory), str(spec.log_path))
        pid = self.asked(start._asdict())
        assert pid is not None
        return Forked(self, pid)

    def asked(self, question: Mapping[str, object]) -> int | None:
        """Return the answer to one line of input; from any thread."""
        with self._asking:
            assert self._popen.stdin is not None
            assert self._popen.stdout is not None
            self._popen.stdin.write(f"{json.dumps(question)}\n")
            self._popen.stdin.flush()
            answer = self._popen.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that forks has ended with {self._popen.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        """End it with all that it has forked."""
        with self._popen:
            self._popen.send_signal(signal.SIGKILL)


class ForkServers:
    """One such process for each set of imports, started when its first fork is asked for."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._servers: dict[str, ForkServer] = {}
        self.running = ExitStack()

    def serving(self, command: Sequence[str], environment: Mapping[str, str]) -> ForkServer | None:
        """Return whoever forks the command, a module and its arguments; None where it needs its own interpreter.

        It needs that where something but our own code reads what its environment has besides that of all starts: the
        interpreter, the C library or a library reads it at its start or when it is imported, and so before the fork.
        """
        own = {name for name, _ in environment.items() ^ self._environment.items()}
        forked_from = _FORKED_FROM.get(command[0]) or _FORKED_FROM.get(" ".join(command[:2]))
        if forked_from is None or NATIVE_MECHANISM != "kernel":
            return None
        if not all(name.startswith(_READ_BY_OUR_CODE) for name in own):
            return None
        if forked_from not in self._servers:
            server = ForkServer(PRELOADED[forked_from], self._environment, self._directory)
            self.running.callback(server.close)
            self._servers[forked_from] = server
        return self._servers[forked_from]
