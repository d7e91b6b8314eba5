"""What traces cost: the same pair under the same load, traced and not traced in turn, by the CPU that its services use.

A caller's `traceparent` says whether a request is sampled, so both sides of a comparison run in the same processes: two
processes with the same settings differ by more than traces cost. Rounds are short and many, because the speed of a
machine changes within seconds. Spans are sent later, from a thread, so what that takes is measured apart; so is what a
span takes that is made and dropped, which requests that are not sampled have, too.
"""

import asyncio
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import repeat
from typing import cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan

from shared.open_telemetry import LightExporter, LightSpan, OpenTelemetryTracer
from shared.tracing import SpanKind, choose_tracer, span_of
from tests.bench.figures import Figure
from tests.bench.load import VARIED, Target, run_load
from tests.bench.pair import ADMIN_KEY, BenchPair, bench_pair
from tests.bench.stores import Store, bench_store
from tests.bench.streaming import MICROSECONDS, Flow

ROUNDS = 150
"""How often each flow is loaded with sampled requests; each round is compared with those beside it."""

GOAL_PERCENT = 3
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SPAN_ID = "00f067aa0ba902b7"
FLOWS = {"50 unpaced streams of 200 deltas": Flow(50, 50), "32 short turns at once": Flow(32, 64, deltas=1)}
SPANS_A_TURN = 10
"""Of a plain turn in both services; docs/tracing.md shows them."""

SPANS_A_BATCH, BATCHES = 512, 20


def tracing_figures(_pair: BenchPair, store: Store) -> list[Figure]:
    """Load a pair that has an exporter, with requests that are sampled and such that are not."""
    found: list[Figure] = []
    own = bench_store(store.name)
    with running_collector() as collector, TemporaryDirectory(prefix="ballast-traces-") as directory, own as lent:
        apart = SPANS_A_TURN * (dropped_span_seconds() + sent_span_seconds(collector))
        with bench_pair(Path(directory), lent.settings, {ENDPOINT: collector}) as pair:
            for name, flow in FLOWS.items():
                spent = [spent_in(pair, flow, is_sampled=bool(place % 2)) for place in range(2 * ROUNDS + 3)][2:]
                found += figures_of(name, [seconds / flow.total for seconds in spent], apart)
    return found


def figures_of(name: str, spent: Sequence[float], apart_seconds: float) -> list[Figure]:
    """Compare each sampled round, at the odd places, with the mean of the two beside it, which are not."""
    plain = statistics.mean(spent[::2])
    beside = zip(spent[:-2:2], spent[1::2], spent[2::2], strict=True)
    added = [now - (before + after) / 2 for before, now, after in beside]
    error = statistics.stdev(added) / len(added) ** 0.5
    cost = statistics.mean(added) + apart_seconds
    return [
        Figure(f"CPU that traces cost, {name}", cost / plain * 100, "%", GOAL_PERCENT),
        Figure(f". of that measured apart, {name}", apart_seconds / plain * 100, "%"),
        Figure(f". standard error, {name}", error / plain * 100, "%"),
        Figure(f". CPU of both services, {name}", plain * MICROSECONDS, "µs"),
    ]


def spent_in(pair: BenchPair, flow: Flow, *, is_sampled: bool) -> float:
    """Return the seconds of CPU that both services use for a load."""
    headers = (f"Authorization: Bearer {ADMIN_KEY}", f"traceparent: 00-{VARIED}-{SPAN_ID}-0{int(is_sampled)}")
    body = f'{{"model": "bench", "stream": true, "store": true, "input": "{flow.asked}"}}'.encode()
    traces = (secrets.token_hex(16) for _ in count())
    address = f"{pair.backend_url}/v1/responses"
    target = Target(address, body, headers, b"response.output_text.delta", b"data: [DONE]", traces)
    before = sum(pair.cpu_seconds().values())
    seen = asyncio.run(run_load(target, flow.streams, flow.total, 0))
    if seen["ended"] != flow.total:
        broken = f"{seen['ended']} of {flow.total} streams ended: {seen['errors']}"
        raise RuntimeError(f"{broken}\n{pair.backend.log_tail()}")
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


def sent_span_seconds(collector: str) -> float:
    """Return the CPU that it takes to encode a span and to send it, in batches, to a collector."""
    os.environ[ENDPOINT] = collector  # where the exporter looks for it
    exporter = LightExporter(Resource.create({}))
    del os.environ[ENDPOINT]
    attributes = {"http.request.method": "POST", "server.address": "127.0.0.1", "http.response.status_code": 200}
    spans = [LightSpan("work", SpanKind.CLIENT, (2**127, 2**63), attributes, None) for _ in range(SPANS_A_BATCH)]
    began = time.thread_time()
    for _ in range(BATCHES):
        exporter.export(cast(Sequence[ReadableSpan], spans))
    spent = time.thread_time() - began
    exporter.shutdown()
    return spent / BATCHES / SPANS_A_BATCH


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
