"""The benchmark: `make bench`. Everything runs on this machine, each part a process, figures side by side.

    python -m tests.bench [--only streams,live] [--store sqlite|postgres]

Prints a table for each store, and one for what needs none; writes var/bench/<store>-<section>.json. The figures of a
machine that has other work to do are bad; what is measured direct, in the same run, suffers alike.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.agent_building import agent_figures
from tests.bench.building import building_figures
from tests.bench.fairness import fairness_figures
from tests.bench.figures import Figure, render_table, write_json
from tests.bench.neighbours import neighbour_figures
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.recognising import recognising_figures
from tests.bench.searching import search_figures
from tests.bench.stores import STORES, Store, bench_store
from tests.bench.streaming import (
    cancel_figures,
    first_delta_figures,
    live_figures,
    paced_figures,
    start_figures,
    stop_figures,
    stream_figures,
    turn_figures,
)
from tests.bench.tracing import tracing_figures
from tests.bench.vectors import vector_figures

RESULTS = Path("var/bench")
BUILDING = "building"


SECTIONS: dict[str, Callable[[BenchPair, Store], list[Figure]]] = {
    "start": start_figures,
    "first": first_delta_figures,
    "streams": stream_figures,
    "live": live_figures,
    "paced": paced_figures,
    "fairness": fairness_figures,
    "cancel": cancel_figures,
    "stop": stop_figures,
    "turns": turn_figures,
    "search": search_figures,
    "traces": tracing_figures,
    "neighbours": neighbour_figures,
    "vectors": vector_figures,
}


def measure_store(name: str, chosen: Sequence[str], directory: Path) -> list[Figure]:
    """Measure the chosen sections, each with a pair and a store of its own, so that none inherits another's load."""
    figures: list[Figure] = []
    for section in chosen:
        with bench_store(name) as store, bench_pair(directory / f"{name}-{section}", store.settings) as pair:
            measured = SECTIONS[section](pair, store)
        write_json(measured, RESULTS / f"{name}-{section}.json")
        figures += measured
    return figures


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print a table with how busy the machine is."""
    busy = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"{title} (the machine's load over 1, 5, 15 minutes: {busy}; {os.cpu_count()} cores)")
    print(f"{render_table(figures)}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--only", default="", help=f"some of {', '.join([*SECTIONS, BUILDING])}, with commas between")
    parser.add_argument("--store", choices=tuple(STORES), action="append", help="by default both")
    given = parser.parse_args(arguments)
    only = given.only.split(",") if given.only else [*SECTIONS, BUILDING]
    if unknown := set(only) - {*SECTIONS, BUILDING}:
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    chosen = [section for section in SECTIONS if section in only]
    with tempfile.TemporaryDirectory(prefix="ballast-bench-") as directory:
        for name in (given.store or STORES) if chosen else ():
            show(STORES[name], measure_store(name, chosen, Path(directory)))
        if BUILDING in only:
            figures = [*building_figures(Path(directory)), *agent_figures(), *recognising_figures(Path(directory))]
            write_json(figures, RESULTS / "building.json")
            show("Building a request", figures)


if __name__ == "__main__":
    main(sys.argv[1:])
