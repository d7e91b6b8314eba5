"""Fixtures over the real servers; each server starts when a test first asks for it."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from backend.migrations.migrate import migrate
from tests.servers.embedder import LocalEmbedder
from tests.servers.forks import ForkServers
from tests.servers.postgres import PostgresServer
from tests.servers.reused_databases import ReusedDatabases, with_database
from tests.servers.services import Launch, RunningService, service_environment
from tests.servers.valkey import ValkeyServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL; whoever kills it restarts it."""
    server = PostgresServer()
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def newest_schema(postgres_server: PostgresServer) -> str:
    """The name of a database with the newest tables, of which tests get copies: making them takes longer."""
    name = postgres_server.new_database()
    with_database(postgres_server.url(name), migrate)
    return name


@pytest.fixture(scope="session")
def reused_databases(postgres_server: PostgresServer, newest_schema: str) -> ReusedDatabases:
    """Databases that have the newest tables."""
    return ReusedDatabases(postgres_server, newest_schema)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, reused_databases: ReusedDatabases) -> Iterator[str]:
    """SQLAlchemy's address of an empty database that has the newest tables, with asyncpg."""
    name = reused_databases.take()
    yield postgres_server.url(name)
    reused_databases.give_back(name)


@pytest.fixture(scope="session")
def newest_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest tables, of which tests get copies."""
    path = tmp_path_factory.mktemp("newest") / "ballast.db"
    with_database(f"sqlite+aiosqlite:///{path}", migrate)
    return path


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's address of a fresh database without tables, with asyncpg."""
    name = postgres_server.new_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """A running Valkey; whoever kills it restarts it."""
    server = ValkeyServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """Address of an empty Valkey."""
    valkey_server.flush()
    return valkey_server.url


@pytest.fixture(scope="session")
def local_embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEmbedder]:
    """A running embedder, that of the wheel; whoever kills it starts it again and waits until it is ready."""
    server = LocalEmbedder(tmp_path_factory.mktemp("embedder"))
    server.start()
    server.wait_ready()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServers]:
    """Processes that have imported our services, from which starts of them are forked."""
    servers = ForkServers(tmp_path_factory.mktemp("forks"), service_environment({}))
    with servers.running:
        yield servers


@pytest.fixture
def launch(tmp_path: Path, forks: ForkServers) -> Iterator[Launch]:
    """Start modules as processes, killed when the test ends; see `launching`."""
    with launching(tmp_path, forks) as start:
        yield start


@pytest.fixture(scope="module")
def launch_for_module(tmp_path_factory: pytest.TempPathFactory, forks: ForkServers) -> Iterator[Launch]:
    """Start modules as processes, killed when the tests of a file have ended; see `launching`."""
    with launching(tmp_path_factory.mktemp("services"), forks) as start:
        yield start


@pytest.fixture(scope="module")
def launch_anew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Start modules as `launch_for_module` does, each in an interpreter of its own, as operators start them."""
    with launching(tmp_path_factory.mktemp("services")) as start:
        yield start


@contextmanager
def launching(own_directory: Path, forks: ForkServers | None = None) -> Generator[Launch]:
    """Lend `launch(module, *arguments, settings=…, ready_url=…, directory=…)`; kill what was started at the end.

    It returns when the process has started; call `wait_ready` on it. Two of one module need two directories.
    """
    with ExitStack() as running:

        def start(
            module: str,
            *arguments: str,
            settings: Mapping[str, str],
            ready_url: str = "",
            directory: Path | None = None,
        ) -> RunningService:
            place = directory or own_directory
            service = RunningService(
                module, *arguments, settings=settings, directory=place, ready_url=ready_url, forks=forks
            )
            service.start()
            running.callback(service.kill)
            return service

        yield start
