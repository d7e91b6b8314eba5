"""A streaming load on a bare asyncio connection: what it measures is the server's, not a client library's.

    python -m tests.bench.load --url http://127.0.0.1:8000/v1/responses --body body.json --streams 50 --total 500

Prints one JSON line. A stream counts when its end marker came; a gap is the time between two reads of one stream that
brought deltas; streams begin spread over `--ramp-seconds`. Deltas are model deltas: `--deltas` for each
stream that ended, however they were grouped on the way (the final text is checked to hold them all).
"""

import argparse
import asyncio
import itertools
import json
import secrets
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from tests.bench.figures import percentile

READ_BYTES = 1 << 16
KEPT_TAIL_BYTES = 1 << 16
KEPT_MARKER_BYTES = 12
VARIED = "{varied}"
"""Stands in a header for what differs between requests."""


@dataclass(frozen=True)
class Target:
    """Where the load goes and how its answer is read."""

    url: str
    body: bytes
    headers: tuple[str, ...]
    first_marker: bytes
    end_marker: bytes
    varied: Iterator[str]


@dataclass
class Seen:
    """What all streams together have shown."""

    first_delta_seconds: list[float] = field(default_factory=list[float])
    gap_seconds: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])


async def stream_once(target: Target, seen: Seen) -> None:
    url = urlsplit(target.url)
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(url.hostname, url.port, limit=READ_BYTES * 4)
    try:
        lines = [f"POST {url.path} HTTP/1.1", f"Host: {url.netloc}", "Content-Type: application/json"]
        lines += [each.replace(VARIED, next(target.varied)) for each in target.headers]
        lines += [f"Content-Length: {len(target.body)}", "Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode() + target.body)
        await read_answer(target, reader, seen, started)
    except ConnectionError as error:  # a body that is refused unread may end so
        seen.errors.append(str(error))
    finally:
        writer.close()


async def read_answer(target: Target, reader: asyncio.StreamReader, seen: Seen, started: float) -> None:
    tail, kept, first, last = b"", b"", None, 0.0
    while data := await asyncio.wait_for(reader.read(READ_BYTES), 60):
        window = tail + data
        if target.first_marker in window:
            now = time.perf_counter()
            if first is None:
                first = now - started
            else:
                seen.gap_seconds.append(now - last)
            last = now
        if target.end_marker in window[-KEPT_TAIL_BYTES:]:
            seen.first_delta_seconds.append(first if first is not None else time.perf_counter() - started)
            return
        tail, kept = window[-KEPT_MARKER_BYTES:], window[-200:]
    seen.errors.append(kept.decode(errors="replace"))


async def run_load(target: Target, streams: int, total: int, ramp_seconds: float) -> dict[str, object]:
    seen = Seen()
    tickets = iter(range(total))

    async def worker(place: int) -> None:
        await asyncio.sleep(ramp_seconds * place / streams)
        for _ in tickets:
            await stream_once(target, seen)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for place in range(streams):
            group.create_task(worker(place))
    wall = time.perf_counter() - started
    firsts = sorted(seen.first_delta_seconds) or [0.0]
    return {
        "streams": streams,
        "total": total,
        "ended": len(seen.first_delta_seconds),
        "errors": seen.errors[:3],
        "wall_seconds": wall,
        "first_delta_p50_ms": statistics.median(firsts) * 1000,
        "first_delta_p99_ms": percentile(firsts, 0.99) * 1000,
        "gap_p50_ms": percentile(seen.gap_seconds or [0.0], 0.5) * 1000,
        "gap_p99_ms": percentile(seen.gap_seconds or [0.0], 0.99) * 1000,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--body", required=True, type=Path)
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--varied", action="append", help="by default another random text for each request")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--total", type=int, default=20)
    parser.add_argument("--ramp-seconds", type=float, default=0)
    parser.add_argument("--first-marker", default="response.output_text.delta")
    parser.add_argument("--end-marker", default="data: [DONE]")
    given = parser.parse_args()
    chosen = Target(
        given.url,
        given.body.read_bytes(),
        tuple(given.header),
        given.first_marker.encode(),
        given.end_marker.encode(),
        itertools.cycle(given.varied) if given.varied else (secrets.token_hex(16) for _ in itertools.count()),
    )
    print(json.dumps(uvloop.run(run_load(chosen, given.streams, given.total, given.ramp_seconds))))
