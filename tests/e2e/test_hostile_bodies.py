"""Bodies meant to hold the event loop get their 4xx, and the streams of another key go on beside them."""

import asyncio
import re

import httpx2

from tests.e2e.pair import Pair
from tests.e2e.turns import bare_client, events_of
from tests.fakes.hostile_bodies import JSON, SECONDS_TO_SEND, attacks
from tests.fakes.model_server import FakeModelControl, Reply

WHOLE_BYTES = 32 * 1024 * 1024
SHORT_BYTES = 2 * 1024 * 1024
WHOLE = frozenset({"millions of unknown keys", "quotes", "a long string of escapes"})
"""Attacks that are sent in the greatest length that the server takes; the others are shorter, to spare the machine."""

STREAMS = 4
DELTAS = 400
LONGEST_LAG_SECONDS = 2.0
"""Many times the bound, because machines that run tests are busy; the benchmark measures the bound itself."""


async def streamed(pair: Pair) -> str:
    async with bare_client(pair, "patient") as client:
        answer = await client.post("/v1/responses", json={"input": "Hi", "stream": True}, timeout=SECONDS_TO_SEND)
        return answer.text


async def test_streams_go_on_beside_hostile_bodies(small_pair: Pair, small_model: FakeModelControl) -> None:
    small_pair.key("patient")
    small_pair.key("hostile")
    await small_model.script(
        *[Reply(text=("word ",) * DELTAS, pause_seconds=0.02)] * STREAMS, Reply(text=("ok",), repeat=True)
    )
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(streamed(small_pair)) for _ in range(STREAMS)]
        while len(await small_model.requests()) < STREAMS:  # noqa: ASYNC110 -- the fake model is another process
            await asyncio.sleep(0.01)
        async with bare_client(small_pair, "hostile") as client:
            await attack(client, WHOLE_BYTES, WHOLE)
            await attack(client, SHORT_BYTES, None)
        lag = await longest_lag(small_pair)
    for stream in streams:
        events = events_of(stream.result())
        assert events[-1]["type"] == "response.completed"
        said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        assert said == "word " * DELTAS
    assert 0 < lag < LONGEST_LAG_SECONDS


async def attack(client: httpx2.AsyncClient, length: int, names: frozenset[str] | None) -> None:
    for name, path, body, statuses in attacks(length):
        if names is None or name in names:
            sent = client.post(path, content=body, headers={"content-type": JSON}, timeout=SECONDS_TO_SEND)
            answer = await sent
            assert answer.status_code in statuses, (name, path, answer.text)
            if answer.status_code >= 400:
                assert len(answer.content) < 2000, name


async def longest_lag(pair: Pair) -> float:
    async with httpx2.AsyncClient(base_url=pair.backend_url) as client:
        metrics = (await client.get("/metrics")).text
    found = re.search(r"^ballast_loop_lag_seconds (\S+)$", metrics, re.MULTILINE)
    assert found is not None
    return float(found[1])
