"""What traces cost: the same load with and without an exporter, side by side, by the CPU that both services use."""

import statistics
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
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
    spent: dict[str, list[Spent]] = {name: [] for name in FLOWS}
    with running_collector() as collector:
        for _ in range(STARTS):
            with both_pairs(store.name, collector) as pairs:
                for name, flow in FLOWS.items():
                    spent[name] += [spent_beside(*pairs, flow) for _ in range(ROUNDS + 1)][1:]
    return [figure for name, flow in FLOWS.items() for figure in figures_of(name, flow, spent[name])]


def figures_of(name: str, flow: Flow, spent: Sequence[Spent]) -> list[Figure]:
    """Return the median of the ratios, and how far that may be from the truth, beside what was spent."""
    ratios = [each.ratio for each in spent]
    added = (statistics.median(ratios) - 1) * 100
    middle = statistics.median(each.plain for each in spent) / flow.total * MICROSECONDS
    return [
        Figure(f"CPU that traces cost, {name}", added, "%", GOAL_PERCENT),
        Figure(f". give or take, {name}", error_of_median(ratios) * 100, "%"),
        Figure(f". CPU of both services without traces, {name}", middle, "µs"),
    ]


def error_of_median(values: Sequence[float]) -> float:
    """Return the standard error of the median, by the spread of the medians of samples drawn from the values."""
    drawn = Random(0)
    return statistics.stdev(statistics.median(drawn.choices(values, k=len(values))) for _ in range(SAMPLES))


@contextmanager
def both_pairs(store: str, collector: str) -> Generator[tuple[BenchPair, BenchPair]]:
    """Run two pairs, each with a store of its own, the second with the exporter."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="ballast-traces-")))
        own, other = (stack.enter_context(bench_store(store)) for _ in range(2))
        plain = stack.enter_context(bench_pair(directory / "plain", own.settings))
        yield plain, stack.enter_context(bench_pair(directory / "traced", other.settings, settings))


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
