"""A tenant moves to another cell while its users talk on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cells.moving import Mover
from tests.cells.world import TENANT, Cells, Size, begin_talks, check_moved, check_talks, fill, move_under_streams
from tests.e2e.pair import PairOptions, start_pair
from tests.servers.fixtures import launching
from tests.servers.forks import ForkServers
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole

SMALL = Size(conversations=5, bases=2, files=3, streams=3)


@pytest.fixture
def addresses(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    names = {cell: postgres_server.new_database() for cell in ("c1", "c2")}
    yield {cell: postgres_server.url(name) for cell, name in names.items()}
    for name in names.values():
        postgres_server.drop_database(name)


@pytest.fixture
def cells(
    addresses: dict[str, str], valkey_server: ValkeyServer, tmp_path: Path, forks: ForkServers
) -> Iterator[Cells]:
    other = ValkeyServer()
    other.start()
    stores = {"c1": valkey_server.url, "c2": other.url}
    with launching(tmp_path, forks) as launch:
        pairs = [
            start_pair(
                launch,
                tmp_path / cell,
                PairOptions(
                    backend={
                        "BACKEND_CELL": cell,
                        "BACKEND_DATABASE_URL": addresses[cell],
                        "BACKEND_REDIS_URL": stores[cell],
                    }
                ),
            )
            for cell in ("c1", "c2")
        ]
        yield Cells(pairs[0], pairs[1], tmp_path / "routes.json")
    other.close()


async def test_a_tenant_moves_under_streams_and_nothing_fails_or_happens_twice(
    cells: Cells, addresses: dict[str, str]
) -> None:
    """The command is killed in the first copy, and where the tenant has just arrived; the same command goes on."""
    await cells.script()
    made = await fill(cells, SMALL)
    talks = await begin_talks(cells, SMALL.streams)
    settings = {"BACKEND_DATABASE_URL": addresses["c1"], "BACKEND_CELL": "c1", "BACKEND_CELLS": f"c2={addresses['c2']}"}
    mover = Mover(TENANT, "c2", cells.routes, settings)
    await move_under_streams(cells, talks, mover, ("copy 1:", "arrived"))
    await check_talks(cells, talks)
    await check_moved(cells, made, "c2", "c1")
    await mover.drop()
    assert mover.lines[-1] == "dropped"
