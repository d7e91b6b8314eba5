"""Other servers beside the pair in one run, each asked by Chat Completions over the same fake model.

    python -m tests.bench.peers --litellm ENVIRONMENT/bin/litellm

The program of LiteLLM's proxy comes from an environment of its own: `pip install 'litellm[proxy]'`. It runs as it is
installed, with one worker and without a database; the pair stores each turn (SQLite). "direct" is the model alone.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import psutil

from tests.bench.pair import ADMIN_KEY, BenchPair, bench_pair, cpu_seconds_of
from tests.bench.streaming import MICROSECONDS, STREAMS, Flow, load
from tests.servers.ports import free_port

_FIRST = Flow(1, 100, deltas=5)
_SHORT = Flow(32, 300, deltas=5)
_LONG = Flow(STREAMS, 100)
_START_SECONDS = 120
_CONFIGURATION = """\
model_list:
  - model_name: bench
    litellm_params: {{model: openai/bench, api_base: "{model}/v1", api_key: none}}
"""


@dataclass(frozen=True)
class Peer:
    """A server under load: its address stands in the pair's place; `services` are what it consists of."""

    name: str
    pair: BenchPair
    services: Sequence[psutil.Process]
    start_seconds: float

    def row(self) -> tuple[str, ...]:
        """Measure it, and return the cells of its row."""
        load(self.pair, Flow(_SHORT.streams, 100, deltas=5), chat=True)
        first = load(self.pair, _FIRST, chat=True)["first_delta_p50_ms"]
        before = sum(map(cpu_seconds_of, self.services))
        short = load(self.pair, _SHORT, chat=True)
        spent = sum(map(cpu_seconds_of, self.services)) - before
        long = load(self.pair, _LONG, chat=True)
        memory = sum(one.memory_info().rss for each in self.services for one in (each, *each.children(recursive=True)))
        return (
            self.name,
            f"{self.start_seconds:.1f}",
            f"{first:.1f}",
            f"{_SHORT.total / short['wall_seconds']:.1f}",
            f"{spent / _SHORT.total * MICROSECONDS / 1000:.1f}",
            f"{_LONG.total * _LONG.deltas / long['wall_seconds']:,.0f}",
            f"{memory / 1e6:.0f}",
        )


@contextmanager
def litellm_proxy(program: Path, pair: BenchPair) -> Generator[Peer]:
    """Start LiteLLM's proxy before the model of a pair; end it with the block."""
    configuration = pair.directory / "litellm.yaml"
    configuration.write_text(_CONFIGURATION.format(model=pair.model_url), encoding="utf-8")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [str(program), "--config", str(configuration), "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(pair.directory),
        "LITELLM_MASTER_KEY": ADMIN_KEY,
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "REPEATED_STREAMING_CHUNK_LIMIT": str(_LONG.deltas),  # the fake model says one word again and again
    }
    began = time.perf_counter()
    with (pair.directory / "litellm.log").open("wb") as log:
        started = subprocess.Popen([*command, "--telemetry", "False"], env=environment, stdout=log, stderr=log)
    try:
        _wait_until_ready(f"{address}/health/liveliness", started)
        elapsed = time.perf_counter() - began
        yield Peer("LiteLLM proxy", replace(pair, backend_url=address), [psutil.Process(started.pid)], elapsed)
    finally:
        started.kill()
        started.wait()


def _wait_until_ready(url: str, started: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while started.poll() is None and time.monotonic() < deadline:
        try:
            if httpx2.get(url).is_success:
                return
        except httpx2.TransportError:
            time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer")


def main() -> None:
    """Measure the pair and each peer that is given, and print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers")
    parser.add_argument("--litellm", type=Path, required=True, help="the program of LiteLLM's proxy")
    program: Path = parser.parse_args().litellm
    print("| | start, s | first delta p50, ms | short turns/s | CPU of one, ms | deltas/s, 50 streams | memory, MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, bench_pair(Path(directory), {}) as pair:
        services = [psutil.Process(one.pid) for one in (pair.backend, pair.chat_shell)]
        seconds = pair.start_seconds["backend"] + pair.start_seconds["chat_shell"]
        with litellm_proxy(program, pair) as proxy:
            direct = Peer("direct", replace(pair, backend_url=pair.model_url), [], 0.0)
            for peer in (direct, Peer("Ballast", pair, services, seconds), proxy):
                print(f"| {' | '.join(peer.row())} |", flush=True)


if __name__ == "__main__":
    main()
