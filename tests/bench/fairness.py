"""What one turn costs others: gaps of paced streams beside one that is not read, 2 MB of text, and many starts."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.bench.figures import Figure
from tests.bench.neighbours import flood
from tests.bench.pair import ADMIN_KEY, BenchPair
from tests.bench.stores import Store
from tests.bench.streaming import Flow, load, load_command

GAP_MILLISECONDS = 100
"""The most that a gap between two deltas of a paced stream may have, at the 99th of a hundred."""

PACED = Flow(50, 50, 250, 50)
MANY = Flow(200, 200, 250, 50)
LONG = Flow(1, 10, deltas=250_000)
"""A turn of 2 MB; when it has ended there is another one."""

STARTS = Flow(100, 100, deltas=5)
IN_FLOW_SECONDS = 2.0
"""All paced streams have begun by then, and none has ended."""


def fairness_figures(pair: BenchPair, _store: Store) -> list[Figure]:
    """Measure the gaps of paced streams, alone and beside others."""
    load(pair, Flow(1, 1))
    alone = load(pair, PACED)["gap_p99_ms"]
    with unread(pair):
        beside_unread = load(pair, PACED)["gap_p99_ms"]
    with flood(load_command(pair, LONG)):
        beside_long = load(pair, PACED)["gap_p99_ms"]
    many = load(pair, MANY)["gap_p99_ms"]
    beside_starts = _beside(pair, MANY, lambda: load(pair, STARTS))
    return [
        _figure(PACED, "one whose client does not read", beside_unread, alone),
        _figure(PACED, "a turn of 2 MB", beside_long, alone),
        _figure(MANY, f"{STARTS.streams} turns begun at once", beside_starts, many),
    ]


def _figure(flow: Flow, beside: str, milliseconds: float, alone: float) -> Figure:
    name = f"gap p99 of {flow.streams} streams at {flow.rate} deltas/s beside {beside} (direct: alone)"
    return Figure(name, milliseconds, "ms", GAP_MILLISECONDS, direct=alone)


def _beside(pair: BenchPair, flow: Flow, act: Callable[[], object]) -> float:
    """Return the gap of paced streams while something is done once."""
    with subprocess.Popen(load_command(pair, flow), stdout=subprocess.PIPE, text=True) as paced:
        time.sleep(IN_FLOW_SECONDS)
        act()
        said, _ = paced.communicate()
    return float(json.loads(said)["gap_p99_ms"])


@contextmanager
def unread(pair: BenchPair) -> Generator[None]:
    """Ask for an answer without end and read nothing of it while the block runs."""
    url = urlsplit(pair.backend_url)
    body = json.dumps({"model": "bench", "stream": True, "input": LONG.asked}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {ADMIN_KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((url.hostname, url.port)) as client:
        client.sendall(head.encode() + body)
        yield
