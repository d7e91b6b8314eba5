"""What hostile bodies of one key do to the live streams of another: `python -m tests.bench.hostile_bodies`.

Prints, for each body, the longest time that a check of health had to wait, and the 99th percentile of the time between
two deltas of the other key's streams, against the same figures in calm. The attacker is a process of its own.
"""

import argparse
import asyncio
import http.client
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
import orjson
import psutil

from tests.bench.figures import percentile
from tests.bench.pair import ADMIN_KEY, BenchPair, bench_pair
from tests.fakes.hostile_bodies import SECONDS_TO_SEND, attacks

BODY_BYTES = 32 * 1024 * 1024
STREAMS = 10
DELTAS_A_SECOND = 50
PACE = f"go [deltas 100000 delay {1000 // DELTAS_A_SECOND}]"
CALM_SECONDS = 5.0
PING_SECONDS = 0.005


class Seen:
    """The gaps between deltas and the waits for checks of health, in seconds, since the last `take`."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        self.waits: list[float] = []

    def take(self) -> tuple[float, float]:
        """Return the 99th percentile of the gaps and the longest wait, both in ms, and begin anew."""
        gaps, waits = self.gaps or [0.0], self.waits or [0.0]
        self.gaps, self.waits = [], []
        return percentile(gaps, 0.99) * 1000, max(waits) * 1000


async def connected(url: str, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request)
    return reader, writer


async def watch_stream(url: str, key: str, seen: Seen) -> None:
    body = orjson.dumps({"model": "bench", "stream": True, "input": PACE})
    lines = ["POST /v1/responses HTTP/1.1", f"Authorization: Bearer {key}", f"Content-Length: {len(body)}", "", ""]
    head = "\r\n".join(lines)
    reader, writer = await connected(url, head.encode() + body)
    last = None
    try:
        while line := await reader.readline():
            if line.startswith(b"event: response.output_text.delta"):
                now = time.perf_counter()
                if last is not None:
                    seen.gaps.append(now - last)
                last = now
        raise RuntimeError("a stream of another key broke")
    finally:
        writer.close()


async def ping(url: str, seen: Seen) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    reader, writer = await connected(url, b"")
    try:
        while True:
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            seen.waits.append(time.perf_counter() - began)
            await asyncio.sleep(PING_SECONDS)
    finally:
        writer.close()


@asynccontextmanager
async def watching(pair: BenchPair, key: str) -> AsyncGenerator[Seen]:
    seen = Seen()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch_stream(pair.backend_url, key, seen)) for _ in range(STREAMS)]
        tasks.append(group.create_task(ping(pair.backend_url, seen)))
        yield seen
        for task in tasks:
            task.cancel()


class Attacker:
    """The process that makes each body, waits until it is told to go, sends it, and prints the status of the answer."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running

    @classmethod
    async def start(cls, *arguments: str) -> Self:
        command = [sys.executable, "-m", "tests.bench.hostile_bodies", *arguments]
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def next_name(self) -> str:
        return await self._line()

    async def attack(self) -> str:
        if self._running.stdin is not None:
            self._running.stdin.write(b"go\n")
        return await self._line()

    async def _line(self) -> str:
        return (await self._running.stdout.readline()).decode().strip() if self._running.stdout is not None else ""


def send_all(url: str, key: str, length: int, only: str) -> None:
    """Be the attacker."""
    place = urlsplit(url)
    for attack in attacks(length):
        told = f"{attack.name}, {attack.path}"
        if only not in told:
            continue
        print(told, flush=True)
        sys.stdin.readline()
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=SECONDS_TO_SEND)
        headers = {"authorization": f"Bearer {key}"}
        connection.request(attack.method, attack.path, attack.body, {**headers, **attack.headers})
        answer = connection.getresponse()
        status, made = answer.status, orjson.loads(answer.read())
        if made.get("object") == "response":
            connection.request("POST", f"{attack.path}/{made['id']}/cancel", headers=headers)
            connection.getresponse().read()
        print(status if status in attack.statuses else f"{status}!", flush=True)


async def measure(pair: BenchPair, only: str, length: int) -> None:
    keys = await new_keys(pair)
    backend = psutil.Process(pair.backend.pid)
    arguments = ("--attack", pair.backend_url, "--key", keys["hostile"], "--length", str(length), "--only", only)
    attacker = await Attacker.start(*arguments)
    async with watching(pair, keys["other"]) as seen:
        await asyncio.sleep(CALM_SECONDS)
        seen.take()
        await asyncio.sleep(CALM_SECONDS)
        row("in calm", "", seen, backend)
        while name := await attacker.next_name():
            seen.take()
            status = await attacker.attack()
            await asyncio.sleep(0.3)
            row(name, status, seen, backend)
    with pair.client() as admin:
        metrics = admin.get("/metrics").text
    print(*re.findall(r"^ballast_(?:loop|http_body)\S* \S+", metrics, re.MULTILINE), sep="\n")


def row(name: str, status: str, seen: Seen, backend: psutil.Process) -> None:
    gap, wait = seen.take()
    memory = backend.memory_info().rss / 1e6
    figures = f"gap p99 {gap:7.1f} ms  longest wait {wait:7.1f} ms  memory {memory:6.0f} MB"
    print(f"{name:60} {status:4} {figures}", flush=True)


async def new_keys(pair: BenchPair) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with httpx2.AsyncClient(base_url=pair.backend_url, headers=headers) as admin:
        made: dict[str, Any] = {
            name: (await admin.post("/v1/api_keys", json={"user_id": name})).json() for name in ("other", "hostile")
        }
    return {name: key["key"] for name, key in made.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="the attacks whose name or path holds this")
    parser.add_argument("--length", type=int, default=BODY_BYTES)
    parser.add_argument("--attack", default="")
    parser.add_argument("--key", default="")
    given = parser.parse_args()
    if given.attack:
        send_all(given.attack, given.key, given.length, given.only)
        return
    with tempfile.TemporaryDirectory(prefix="ballast-hostile-") as path, bench_pair(Path(path), {}) as pair:
        asyncio.run(measure(pair, given.only, given.length))
        log = sorted(Path(path).glob("*backend*"))
        for file in log:
            held = [line for line in file.read_text(errors="replace").splitlines() if "Event loop held" in line]
            print(*held, sep="\n")


if __name__ == "__main__":
    main()
