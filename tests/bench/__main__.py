"""The benchmark: `make bench`. Everything runs on this machine, each part a process, figures side by side.

    python -m tests.bench [streaming] [deployed] [search] [building]

Writes var/bench/<part>.json.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.building import building_figures
from tests.bench.deployed import deployed_figures
from tests.bench.figures import Figure, render_table, write_json
from tests.bench.pair import bench_pair
from tests.bench.searching import search_figures
from tests.bench.streaming import DELTAS_A_TURN, added_to_first_delta, cancel_p95, deltas_a_second
from tests.servers.postgres import PostgresServer

RESULTS = Path("var/bench")


def measure_streaming(directory: Path) -> list[Figure]:
    with bench_pair(directory, ("--deltas", str(DELTAS_A_TURN)), {}) as pair:
        figures = [
            Figure(f"start to ready, {name}", pair.start_seconds[name], "s", 2) for name in ("backend", "chat_shell")
        ]
        figures += [Figure(f"memory after start, {name}", mb, "MB", 130) for name, mb in pair.memory_mb().items()]
        figures += added_to_first_delta(pair, directory)
        figures.append(deltas_a_second(pair, directory))
        figures.append(cancel_p95(pair))
        figures += [Figure(f"memory after the load, {name}", mb, "MB", 130) for name, mb in pair.memory_mb().items()]
    return figures


def measure_search(directory: Path) -> list[Figure]:
    with bench_pair(directory / "sqlite", (), {}) as pair:
        figures = search_figures(pair, "SQLite")
    server = PostgresServer()
    server.start()
    try:
        url = server.url(server.new_database())
        with bench_pair(directory / "postgresql", (), {"BACKEND_DATABASE_URL": url}) as pair:
            figures += search_figures(pair, "PostgreSQL")
    finally:
        server.close()
    return figures


PARTS: dict[str, Callable[[Path], list[Figure]]] = {
    "streaming": measure_streaming,
    "deployed": deployed_figures,
    "search": measure_search,
    "building": building_figures,
}


def main(chosen: list[str]) -> None:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="ballast-bench-") as directory:
        for name in chosen or list(PARTS):
            measured = PARTS[name](Path(directory) / name)
            write_json(measured, RESULTS / f"{name}.json")
            figures += measured
    print(render_table(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
