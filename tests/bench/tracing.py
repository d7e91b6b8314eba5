"""What traces cost: the same load with and without an exporter, in turn, by the CPU that both services use."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tests.bench.figures import Figure
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.stores import Store, bench_store
from tests.bench.streaming import Flow, load

PAIRS = 21
GOAL_PERCENT = 3
FLOWS = {
    "50 unpaced streams of 200 deltas": Flow(50, 100),
    "32 short turns at once": Flow(32, 200, deltas=1),
}


def tracing_figures(plain: BenchPair, store: Store) -> list[Figure]:
    """Measure each kind of load on two pairs that differ in nothing but the exporter."""
    with running_collector() as collector, bench_store(store.name) as other:
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector}
        with bench_pair(plain.directory / "traced", other.settings, settings) as traced:
            return [
                Figure(f"CPU that traces cost, {name}", added_percent(plain, traced, flow), "%", GOAL_PERCENT)
                for name, flow in FLOWS.items()
            ]


def added_percent(plain: BenchPair, traced: BenchPair, flow: Flow) -> float:
    """Return the median over pairs of runs, one beside the other, of how much more CPU the traced one uses."""
    for pair in (plain, traced):
        load(pair, flow)
    ratios: list[float] = []
    for number in range(PAIRS):
        order = (plain, traced) if number % 2 else (traced, plain)
        used = {id(pair): cpu_of(pair, lambda pair=pair: load(pair, flow)) for pair in order}
        ratios.append(used[id(traced)] / used[id(plain)])
    return (statistics.median(ratios) - 1) * 100


def cpu_of(pair: BenchPair, work: Callable[[], object]) -> float:
    """Return the seconds of CPU that both services use for the work."""
    before = sum(pair.cpu_seconds().values())
    work()
    return sum(pair.cpu_seconds().values()) - before


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
