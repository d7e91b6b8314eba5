"""Limits of keys, as a client of real processes meets them."""

import asyncio

import httpx2

from tests.e2e.pair import ADMIN_KEY, Pair
from tests.e2e.turns import answer_to_head, turn
from tests.patience import PATIENCE_SECONDS


async def test_a_key_that_is_at_its_limit_is_refused_before_it_sends_its_body(pair: Pair):
    with pair.http(ADMIN_KEY) as admin:
        limited = {"user_id": "limited", "role": "user", "turns_per_minute": 1}
        key = admin.post("/v1/api_keys", json=limited).raise_for_status().json()["key"]
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        await turn(client, "Hi")
        first = await client.post("/v1/responses", json={"input": "Hi"})
        assert first.status_code == 429
    async with asyncio.timeout(PATIENCE_SECONDS):
        head, body = await answer_to_head(pair, key)
    assert head[0].split()[1] == "429"
    assert body == first.text
    told = dict(line.lower().split(": ", 1) for line in head[1:])
    assert told["x-ratelimit-remaining-requests"] == "0"
    assert 0 < int(told["retry-after"]) <= int(first.headers["retry-after"])
