"""What traces cost: the same pair under the same load, traced and not traced in turn, by the CPU that its services use.

A caller's `traceparent` says whether a request is sampled, so both sides of a comparison run in the same processes: two
processes with the same settings differ by more than traces cost. What a request costs that is not sampled, besides, is
measured apart: its spans are made and dropped.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import repeat

from shared.open_telemetry import OpenTelemetryTracer
from shared.tracing import SpanKind, choose_tracer, span_of
from tests.bench.figures import Figure
from tests.bench.load import VARIED
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.stores import Store, bench_store
from tests.bench.streaming import MICROSECONDS, Flow, load

ROUNDS = 16
"""How often each flow is loaded, every other time sampled; each round is compared with those beside it."""

GOAL_PERCENT = 3
EXPORTED_EACH_SECONDS = 1
SPAN_ID = "00f067aa0ba902b7"
FLOWS = {
    "50 unpaced streams of 200 deltas": Flow(50, 150),
    "32 short turns at once": Flow(32, 200, deltas=1),
}
SPANS_A_TURN = 10
"""Of a plain turn in both services; docs/tracing.md shows them."""


def tracing_figures(_pair: BenchPair, store: Store) -> list[Figure]:
    """Load a pair that has an exporter, with requests that are sampled and such that are not."""
    settings = {"OTEL_BSP_SCHEDULE_DELAY": str(EXPORTED_EACH_SECONDS * 1000)}
    dropped = dropped_span_seconds()
    found: list[Figure] = []
    with running_collector() as collector, TemporaryDirectory(prefix="ballast-traces-") as directory:
        settings |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector}
        own = bench_store(store.name)
        with own as lent, bench_pair(Path(directory), lent.settings, settings) as pair:
            for name, flow in FLOWS.items():
                load(pair, flow)
                spent = [spent_in(pair, flow, is_sampled=bool(place % 2)) for place in range(2 * ROUNDS + 1)]
                found += figures_of(name, [seconds / flow.total for seconds in spent], dropped)
    return found


def figures_of(name: str, spent: Sequence[float], dropped_seconds: float) -> list[Figure]:
    """Compare each sampled round, at the odd places, with the mean of the two beside it, which are not."""
    plain = statistics.median(spent[::2])
    added = [
        now - (before + after) / 2 for before, now, after in zip(spent[:-2:2], spent[1::2], spent[2::2], strict=True)
    ]
    error = statistics.stdev(added) / len(added) ** 0.5
    making = SPANS_A_TURN * dropped_seconds
    return [
        Figure(f"CPU that traces cost, {name}", (statistics.mean(added) + making) / plain * 100, "%", GOAL_PERCENT),
        Figure(f". of that spans that are made and dropped, {name}", making / plain * 100, "%"),
        Figure(f". standard error, {name}", error / plain * 100, "%"),
        Figure(f". CPU of both services, {name}", plain * MICROSECONDS, "µs"),
    ]


def spent_in(pair: BenchPair, flow: Flow, *, is_sampled: bool) -> float:
    """Return the seconds of CPU that both services use for a load, with all that they export of it afterwards."""
    header = f"traceparent: 00-{VARIED}-{SPAN_ID}-0{int(is_sampled)}"
    before = sum(pair.cpu_seconds().values())
    load(pair, flow, headers=[header])
    time.sleep(EXPORTED_EACH_SECONDS * 1.5)
    return sum(pair.cpu_seconds().values()) - before


def dropped_span_seconds() -> float:
    """Return how much longer a span takes that is made and dropped than one without a tracer."""
    without = _span_seconds()
    tracer = OpenTelemetryTracer("bench", {})
    choose_tracer(tracer)
    try:
        with span_of("above", kind=SpanKind.SERVER, remote_parent=f"00-{'1' * 32}-{SPAN_ID}-00"):
            return _span_seconds() - without
    finally:
        choose_tracer(None)
        tracer.close()


def _span_seconds() -> float:
    def work() -> None:
        with span_of("work", {"db.system.name": "postgresql"}):
            pass

    return min(repeat(work, number=10_000, repeat=5)) / 10_000


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
