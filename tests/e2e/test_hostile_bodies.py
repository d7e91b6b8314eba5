"""Bodies meant to hold the event loop get their 4xx, and the streams of another key go on beside them."""

import asyncio
import re
from pathlib import Path

import httpx2
import orjson
import pytest

from tests.e2e.pair import Pair
from tests.e2e.turns import Body, bare_client, events_of
from tests.fakes.hostile_bodies import SECONDS_TO_SEND, attacks
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.combination

BODY_BYTES = 6 * 1024 * 1024
NAMES = frozenset(
    {
        "millions of unknown keys",
        "millions of empty objects",
        "quotes",
        "a long string of escapes",
        "5,000 wrong parts",
        "4,000 parts",
        "texts of newlines",
    }
)
"""Attacks of each kind; the benchmark measures all, in the greatest length that the server takes."""

STREAMS = 4
DELTAS = 150
MAX_HELD_SECONDS = 0.25
"""What the loop's thread may compute in one go: five times the bound, for slow machines. Busy ones change it little."""


async def streamed(pair: Pair) -> str:
    async with bare_client(pair, "patient") as client:
        answer = await client.post("/v1/responses", json={"input": "Hi", "stream": True}, timeout=SECONDS_TO_SEND)
        return answer.text


async def test_streams_go_on_beside_hostile_bodies(small_pair: Pair, small_model: FakeModelControl) -> None:
    small_pair.key("patient")
    small_pair.key("hostile")
    log = small_pair.backend.spec.log_path
    began_at = log.stat().st_size
    await small_model.script(
        *[Reply(text=("word ",) * DELTAS, pause_seconds=0.02)] * STREAMS, Reply(text=("ok",), repeat=True)
    )
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(streamed(small_pair)) for _ in range(STREAMS)]
        while len(await small_model.requests()) < STREAMS:  # noqa: ASYNC110 -- the fake model is another process
            await asyncio.sleep(0.01)
        async with bare_client(small_pair, "hostile") as client:
            await attack(client)
        assert await longest_lag(small_pair) > 0
    for stream in streams:
        events = events_of(stream.result())
        assert events[-1]["type"] == "response.completed"
        said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        assert said == "word " * DELTAS
    assert [line for line in held_lines(log, began_at) if line["cpu_seconds"] >= MAX_HELD_SECONDS] == []


async def attack(client: httpx2.AsyncClient) -> None:
    for each in attacks(BODY_BYTES):
        if each.name in NAMES:
            sent = client.request(
                each.method, each.path, content=each.body, headers=each.headers, timeout=SECONDS_TO_SEND
            )
            answer = await sent
            assert answer.status_code in each.statuses, (each.name, each.path, answer.text)
            if answer.status_code >= 400:
                assert len(answer.content) < 2000, each.name


def held_lines(log: Path, began_at: int) -> list[Body]:
    lines = log.read_bytes()[began_at:].splitlines()
    return [orjson.loads(line) for line in lines if b"Event loop held" in line]


async def longest_lag(pair: Pair) -> float:
    metrics, _ = await pair.metrics()
    found = re.search(r"^ballast_loop_lag_seconds (\S+)$", metrics, re.MULTILINE)
    assert found is not None
    return float(found[1])
