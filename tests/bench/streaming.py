"""Deltas a second, time to the first delta, cancelling: through the pair and, beside it, direct."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, percentile
from tests.bench.pair import ADMIN_KEY, BenchPair

STREAMS = 50
TURNS = 500
DELTAS_A_TURN = 200
ROUNDS = 100
CANCELS = 20
DIRECT_MARKER = '"content":" ballast"'


def load(pair: BenchPair, directory: Path, *, direct: bool, streams: int, total: int) -> dict[str, Any]:
    """Run the load generator as a process of its own and return what it saw."""
    message = {"role": "user", "content": "go"}
    body = {"model": "bench", "stream": True, "messages": [message]}
    if not direct:
        body = {"model": "bench", "stream": True, "store": True, "input": "go"}
    path = directory / f"body-{'direct' if direct else 'pair'}.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    url = f"{pair.model_url}/v1/chat/completions" if direct else f"{pair.backend_url}/v1/responses"
    command = [sys.executable, "-m", "tests.bench.load", "--url", url, "--body", str(path)]
    command += ["--header", f"Authorization: Bearer {ADMIN_KEY}", "--streams", str(streams), "--total", str(total)]
    command += ["--first-marker", DIRECT_MARKER] if direct else []
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    seen: dict[str, Any] = json.loads(finished.stdout)
    if seen["ended"] != total:
        raise RuntimeError(f"{total - seen['ended']} of {total} streams broke: {seen['errors']}")
    return seen


def deltas_a_second(pair: BenchPair, directory: Path) -> Figure:
    """Measure unpaced streams; a delta is one of the model's, however it was grouped on the way."""
    load(pair, directory, direct=False, streams=STREAMS, total=STREAMS)
    rates: dict[bool, float] = {}
    for direct in (True, False):
        seen = load(pair, directory, direct=direct, streams=STREAMS, total=TURNS)
        rates[direct] = TURNS * DELTAS_A_TURN / seen["wall_seconds"]
    return Figure(
        f"deltas a second, {STREAMS} unpaced streams", rates[False], "/s", 10_000, at_least=True, direct=rates[True]
    )


def added_to_first_delta(pair: BenchPair, directory: Path) -> list[Figure]:
    """Measure one stream at a time, direct and through the pair in turn."""
    load(pair, directory, direct=False, streams=1, total=ROUNDS)
    direct = load(pair, directory, direct=True, streams=1, total=ROUNDS)
    through = load(pair, directory, direct=False, streams=1, total=ROUNDS)
    return [
        Figure(
            f"added time to the first delta, one stream, {name}",
            through[key] - direct[key],
            "ms",
            goal,
            direct=direct[key],
        )
        for name, key, goal in (("p50", "first_delta_p50_ms", 5), ("p99", "first_delta_p99_ms", None))
    ]


def cancel_p95(pair: BenchPair) -> Figure:
    """Measure from the cancel request's sending to end of file at the fake model."""
    waits: list[float] = []
    with pair.client() as client:
        for _ in range(CANCELS):
            closed_before = len(client.get(f"{pair.model_url}/closed").json())
            body = {"model": "bench", "input": "endless", "background": True}
            response_id = client.post("/v1/responses", json=body).json()["id"]
            await_text(client, response_id)
            sent_at = time.time()
            assert client.post(f"/v1/responses/{response_id}/cancel").json()["status"] == "cancelled"
            while len(closed := client.get(f"{pair.model_url}/closed").json()) == closed_before:
                time.sleep(0.005)
            waits.append((closed[-1] - sent_at) * 1000)
    return Figure(f"p95 of {CANCELS} cancels, request to end of file at the model", percentile(waits, 0.95), "ms", 200)


def await_text(client: Any, response_id: str) -> None:
    """Return once the first piece of the answer has come."""
    with client.stream("GET", f"/v1/responses/{response_id}", params={"stream": "true"}) as answer:
        for line in answer.iter_lines():
            if "response.output_text.delta" in line:
                return
