"""What traces cost: the same load with and without an exporter, side by side, by the CPU that both services use."""

import statistics
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.bench.figures import Figure
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.stores import Store, bench_store
from tests.bench.streaming import MICROSECONDS, Flow, load

STARTS, ROUNDS = 7, 3
"""How often both pairs are started, for processes with the same settings differ, too, and loaded after each start."""
GOAL_PERCENT = 3
SAMPLES = 1_000
FLOWS = {
    "50 unpaced streams of 200 deltas": Flow(50, 100),
    "32 short turns at once": Flow(32, 200, deltas=1),
}


@dataclass(frozen=True)
class Spent:
    """Seconds of CPU that both services of each pair used for the same load at the same time."""

    plain: float
    traced: float

    @property
    def ratio(self) -> float:
        """How many times as much the traced pair used."""
        return self.traced / self.plain


def tracing_figures(_pair: BenchPair, store: Store) -> list[Figure]:
    """Measure each kind of load on two pairs that differ in nothing but the exporter."""
    spent: dict[str, list[list[Spent]]] = {name: [] for name in FLOWS}
    with running_collector() as collector:
        for start in range(STARTS):
            with both_pairs(store.name, collector, traced_first=bool(start % 2)) as pairs:
                for name, flow in FLOWS.items():
                    spent[name].append([spent_beside(*pairs, flow) for _ in range(ROUNDS + 1)][1:])
    return [figure for name, flow in FLOWS.items() for figure in figures_of(name, flow, spent[name])]


def figures_of(name: str, flow: Flow, starts: Sequence[Sequence[Spent]]) -> list[Figure]:
    """Return the median of the ratios, and how far that may be from the truth, beside what was spent."""
    ratios = [[each.ratio for each in start] for start in starts]
    added = (statistics.median(chain(*ratios)) - 1) * 100
    middle = statistics.median(each.plain for each in chain(*starts)) / flow.total * MICROSECONDS
    return [
        Figure(f"CPU that traces cost, {name}", added, "%", GOAL_PERCENT),
        Figure(f". give or take, {name}", error_of_median(ratios) * 100, "%"),
        Figure(f". CPU of both services without traces, {name}", middle, "µs"),
    ]


def error_of_median(starts: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the median, by the spread of the medians of samples.

    Whole starts are drawn, because what one start of a process has, its runs have in common.
    """
    drawn = Random(0)
    return statistics.stdev(statistics.median(chain(*drawn.choices(starts, k=len(starts)))) for _ in range(SAMPLES))


@contextmanager
def both_pairs(store: str, collector: str, *, traced_first: bool) -> Generator[tuple[BenchPair, BenchPair]]:
    """Run two pairs, each with a store of its own, and lend first the one without an exporter, whichever began."""
    started: dict[bool, BenchPair] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="ballast-traces-")))
        for is_traced in (traced_first, not traced_first):
            settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector} if is_traced else {}
            own = stack.enter_context(bench_store(store)).settings
            started[is_traced] = stack.enter_context(bench_pair(directory / f"traced-{is_traced}", own, settings))
        yield started[False], started[True]


def spent_beside(plain: BenchPair, traced: BenchPair, flow: Flow) -> Spent:
    """Load both pairs at the same time: whatever else the machine does, it takes from both alike."""
    pairs = plain, traced
    before = [sum(pair.cpu_seconds().values()) for pair in pairs]
    with ThreadPoolExecutor(len(pairs)) as threads:
        list(threads.map(partial(load, flow=flow), pairs))
    after = [sum(pair.cpu_seconds().values()) for pair in pairs]
    return Spent(*(late - early for early, late in zip(before, after, strict=True)))


@contextmanager
def running_collector() -> Generator[str]:
    """Run a collector as a process, and lend its address."""
    command = [sys.executable, "-m", "tests.fakes.otlp_collector"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().strip()
        finally:
            child.kill()
