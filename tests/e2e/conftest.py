"""Pairs of real processes for the end-to-end tests, one of each kind a run."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl
from tests.servers.forks import ForkServers
from tests.servers.postgres import PostgresServer
from tests.servers.services import RunningService
from tests.servers.valkey import ValkeyServer

SMALL = "sqlite-memory-grpc"
LARGE = "postgresql-valkey-http"


class Pairs:
    """Starts a pair of a kind when it is first asked for, and keeps it for the run."""

    def __init__(self, directory: Path, request: pytest.FixtureRequest) -> None:
        self._directory = directory
        self._request = request
        self._started: dict[str, Pair] = {}
        self.running = ExitStack()

    def get(self, kind: str) -> Pair:
        if kind not in self._started:
            options = PairOptions() if kind == SMALL else self._large_options()
            self._started[kind] = start_pair(self.launch, self._directory / kind, options)
        return self._started[kind]

    def _large_options(self) -> PairOptions:
        postgres: PostgresServer = self._request.getfixturevalue("postgres_server")
        valkey: ValkeyServer = self._request.getfixturevalue("valkey_server")
        database = postgres.url(postgres.new_database())
        return PairOptions(over_http=True, backend={"BACKEND_DATABASE_URL": database, "BACKEND_REDIS_URL": valkey.url})

    def launch(
        self, module: str, *arguments: str, settings: Mapping[str, str], ready_url: str, directory: Path
    ) -> RunningService:
        """Start a service that ends with the run."""
        forks: ForkServers = self._request.getfixturevalue("forks")
        service = RunningService(
            module, *arguments, settings=settings, directory=directory, ready_url=ready_url, forks=forks
        )
        service.start()
        self.running.callback(service.kill)
        return service


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Pairs]:
    """All pairs of the run."""
    request.getfixturevalue("forks")  # it ends after them
    pairs = Pairs(tmp_path_factory.mktemp("pairs"), request)
    with pairs.running:
        yield pairs


@pytest.fixture(params=first_of(SMALL, LARGE))
def pair(request: pytest.FixtureRequest, pairs: Pairs) -> Pair:
    """A running pair of each kind; nothing is emptied between tests, so use names of your own."""
    return pairs.get(request.param)


@pytest.fixture
def small_pair(pairs: Pairs) -> Pair:
    """The pair on SQLite, where the kind makes no difference."""
    return pairs.get(SMALL)


@pytest.fixture
async def model(pair: Pair) -> AsyncIterator[FakeModelControl]:
    """The fake model behind `pair`, its script and records empty."""
    async with pair.fresh_model() as control:
        yield control


@pytest.fixture
async def small_model(small_pair: Pair) -> AsyncIterator[FakeModelControl]:
    """The fake model behind `small_pair`, its script and records empty."""
    async with small_pair.fresh_model() as control:
        yield control
