"""Move a large tenant under streams, and back with a kill at ten points: `python -m tests.cells`.

It prints a line of JSON with what was found, and ends with 1 where something failed.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson

from tests.cells.moving import LINES, Mover
from tests.cells.world import TENANT, Cells, Size, begin_talks, check_moved, check_talks, fill, move_under_streams
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.servers.fixtures import launching
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer


@contextmanager
def two_cells(folder: Path) -> Generator[tuple[Cells, dict[str, str]]]:
    """Start two pairs, each with a database and a Valkey of its own, while the block runs."""
    with ExitStack() as stack:
        server = PostgresServer()
        server.start()
        stack.callback(server.close)
        launch = stack.enter_context(launching(folder))
        addresses = {cell: server.url(server.new_database()) for cell in ("c1", "c2")}
        pairs: list[Pair] = []
        for cell, address in addresses.items():
            valkey = ValkeyServer()
            valkey.start()
            stack.callback(valkey.close)
            stores = {"BACKEND_CELL": cell, "BACKEND_DATABASE_URL": address, "BACKEND_REDIS_URL": valkey.url}
            pairs.append(start_pair(launch, folder / cell, PairOptions(backend=stores)))
        yield Cells(pairs[0], pairs[1], folder / "routes.json"), addresses


def mover_from(cell: str, there: str, cells: Cells, addresses: dict[str, str]) -> Mover:
    """Return the command that moves the tenant from a cell."""
    settings = {
        "BACKEND_DATABASE_URL": addresses[cell],
        "BACKEND_CELL": cell,
        "BACKEND_CELLS": f"{there}={addresses[there]}",
    }
    return Mover(TENANT, there, cells.routes, settings)


async def measure(cells: Cells, addresses: dict[str, str], size: Size) -> dict[str, object]:
    """Move there, drop what was left, and move back, killed at ten points."""
    await cells.script()
    made = await fill(cells, size)
    found: dict[str, object] = {"size": size.__dict__}
    for here, there, kills in (("c1", "c2", ()), ("c2", "c1", LINES)):
        talks, began = await begin_talks(cells, size.streams), time.monotonic()
        mover = mover_from(here, there, cells, addresses)
        await move_under_streams(cells, talks, mover, kills)
        await check_talks(cells, talks)
        await check_moved(cells, made, there, here)
        await mover.drop()
        found[f"{here} to {there}"] = {
            "seconds": round(time.monotonic() - began, 1),
            "writes_stopped_seconds": mover.stopped_seconds,
            "killed": mover.kills,
            "turns": sum(len(talk.asked) for talk in talks),
            "failed": sum(len(talk.failed) for talk in talks),
            "longest_wait_seconds": round(max(each for talk in talks for each in talk.waited_seconds), 2),
            "turns_that_ran_on": mover.ran_on,
        }
        sys.stdout.write(f"{orjson.dumps(found).decode()}\n")
        sys.stdout.flush()
    return found


def main() -> None:
    """Run it with the sizes of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cells")
    for name, most in (("conversations", 2_000), ("bases", 20), ("files", 500), ("streams", 20)):
        parser.add_argument(f"--{name}", type=int, default=most)
    size = Size(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory() as folder, two_cells(Path(folder)) as (cells, addresses):
        asyncio.run(measure(cells, addresses, size))


if __name__ == "__main__":
    main()
