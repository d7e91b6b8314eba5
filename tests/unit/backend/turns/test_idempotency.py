"""Requests that are sent again under an Idempotency-Key: what is done once, and what is refused."""

import asyncio
import hmac
from datetime import timedelta
from typing import Any
from unittest import mock

import httpx2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.foundation.domain import idempotency
from backend.foundation.domain.idempotency import KEPT_FOR, KeyClaim, KeyedRequest, claim_cooperatively
from backend.foundation.domain.json_objects import result_of
from backend.identity.domain import KeyRole
from backend.identity.services import KeyAdministration
from backend.turns.http.event_stream import DONE
from shared.models.events import ModelCallStarted, TurnFailed
from shared.models.values import JsonObject
from tests.fakes.chat_shell_scripted import USAGE, answer
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import client_of
from tests.fakes.served_turns import REPORT, ServedApi, serve_api
from tests.fakes.store_api_keys import FakeApiKeyStore

KEY = {"Idempotency-Key": "order-17"}
ASKED = {"input": "Hi", "metadata": {"a": "1", "b": "2"}}


async def posted(api: ServedApi, body: Any = ASKED, path: str = "/v1/responses", **headers: str) -> httpx2.Response:
    return await api.http.post(path, json=body, headers={**KEY, **headers})


async def test_a_repeated_request_is_one_turn_and_the_same_answer() -> None:
    async with serve_api(answer("Hel", "lo."), answer("Another.")) as api:
        first = await posted(api)
        again = await posted(api, {"metadata": {"b": "2", "a": "1"}, "input": "Hi"})
        streamed = await posted(api, {**ASKED, "stream": True})
        other = await api.http.post("/v1/responses", json=ASKED)
    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert streamed.headers["idempotent-replayed"] == "true"
    assert streamed.content.endswith(DONE)
    assert first.json()["id"] in streamed.text
    assert other.json()["id"] != first.json()["id"]


async def test_a_stream_is_repeated_as_an_answer() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        streamed = await posted(api, {**ASKED, "stream": True, "stream_options": {"include_obfuscation": False}})
        whole = await posted(api)
    assert whole.json()["id"] in streamed.text
    assert whole.json()["status"] == "completed"


async def test_many_at_once_are_one_turn() -> None:
    async with serve_api(answer("Hel", "lo."), *(answer("Another.") for _ in range(9))) as api:
        answers = await asyncio.gather(*(posted(api) for _ in range(10)))
        assert len(api.turns.state.responses) == 1
    assert [each.status_code for each in answers] == [200] * 10
    assert len({each.content for each in answers}) == 1


@pytest.mark.parametrize("changed", [{"input": "Ho"}, {"temperature": 0.5}, {"background": True}])
async def test_another_request_under_the_same_key_is_refused(changed: dict[str, Any]) -> None:
    async with serve_api(answer("Hello.")) as api:
        await posted(api)
        refused = await posted(api, {**ASKED, **changed})
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (422, "Idempotency-Key", "idempotency_key_reused")


async def test_another_path_is_another_request() -> None:
    async with serve_api() as api:
        created = await posted(api, {}, "/v1/conversations")
        refused = await posted(api, {}, "/v1/knowledge_bases")
        assert (created.status_code, refused.status_code) == (201, 400)
        named = await posted(api, {"name": "Base"}, "/v1/knowledge_bases")
    assert named.status_code == 422


async def test_keys_belong_to_their_callers() -> None:
    async with serve_api(answer("To Ada."), answer("To Bob.")) as api:
        first = await posted(api)
        house_key = await api_key(api, "bob")
        async with client_of(api.app, house_key) as bob:
            second = await bob.post("/v1/responses", json=ASKED, headers=KEY)
    assert first.json()["id"] != second.json()["id"]


async def api_key(api: ServedApi, user_id: str) -> str:
    keys = KeyAdministration(FakeApiKeyStore(api.turns.state), api.turns.clock, api.turns.state.known_keys)
    return (await keys.issue(user_id, KeyRole.USER))[1]


async def test_a_failed_turn_is_repeated_as_its_failure() -> None:
    failing = (ModelCallStarted(call=0), TurnFailed(error=REPORT, usage=USAGE))
    async with serve_api(failing, answer("Better.")) as api:
        first, again = await posted(api), await posted(api)
    assert first.status_code == again.status_code == 429
    assert first.json() == again.json()
    assert again.headers["x-should-retry"] == "false"


async def test_a_refused_request_does_not_use_its_key() -> None:
    async with serve_api(answer("Hello.")) as api:
        for wrong in ({"input": "Hi", "model": "no-such"}, {"input": "Hi", "conversation": "conv_none"}):
            assert (await posted(api, wrong)).status_code == 404
        assert (await posted(api)).status_code == 200


async def test_a_key_is_forgotten_after_a_day() -> None:
    async with serve_api(answer("Hello."), answer("Hello again.")) as api:
        first = await posted(api)
        api.turns.clock.advance(KEPT_FOR.total_seconds() + 1)
        second = await posted(api, {"input": "Something else"})
    assert second.status_code == 200
    assert second.json()["id"] != first.json()["id"]


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "ключ", "a\tb"])
async def test_a_key_that_is_none_is_refused(key: str) -> None:
    async with serve_api() as api:
        for path in ("/v1/responses", "/v1/conversations", "/v1/knowledge_bases"):
            refused = await api.http.post(path, json={"input": "Hi"}, headers=[(b"Idempotency-Key", key.encode())])
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")


async def test_a_repeated_header_is_refused() -> None:
    async with serve_api() as api:
        refused = await api.http.post(
            "/v1/responses", json=ASKED, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
        )
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")


async def test_a_turn_that_leaves_nothing_takes_no_key() -> None:
    async with serve_api() as api:
        refused = await posted(api, {**ASKED, "store": False})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")


async def test_conversations_items_and_bases_are_made_once() -> None:
    message = {"type": "message", "role": "user", "content": "Hi"}
    async with serve_api() as api:
        made = [await posted(api, {"metadata": {"a": "b"}}, "/v1/conversations") for _ in range(2)]
        conversation = made[0].json()["id"]
        path = f"/v1/conversations/{conversation}/items"
        added = [await posted(api, {"items": [message, message]}, path, **{"Idempotency-Key": "i"}) for _ in range(2)]
        bases = [await posted(api, {"name": "B"}, "/v1/knowledge_bases", **{"Idempotency-Key": "b"}) for _ in range(2)]
        assert len(api.turns.state.items[conversation]) == 2
    for first, again in (made, added, bases):
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.json() == again.json()
        assert again.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in first.headers


def claim_of(request: KeyedRequest, secret: str = "secret") -> KeyClaim:
    return result_of(claim_cooperatively(request, secret, FakeClock().now()))


def requesting(fields: JsonObject) -> KeyedRequest:
    return KeyedRequest(tenant="t", user_id="ann", key="order-17", call="POST /v1/responses", fields=fields)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([1, 3, 65_536]))
def test_a_fingerprint_is_of_the_sorted_json_text(fields: JsonObject, slice_characters: int) -> None:
    text = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
    expected = hmac.digest(b"secret", b"idempotent request " + text + b"\0POST /v1/responses", "sha256").hex()
    with mock.patch.object(idempotency, "SLICE_CHARACTERS", slice_characters):
        assert claim_of(requesting(fields)).fingerprint == expected


@pytest.mark.parametrize(
    "fields",
    [{"a": ["\n" * 1_000_000] * 2}, {f"k{n}": {f"p{m}": "x" for m in range(16)} for n in range(1000)}],
    ids=["long strings", "many values"],
)
def test_a_large_body_is_hashed_in_many_steps(fields: JsonObject) -> None:
    written = len(orjson.dumps(fields))
    steps = sum(1 for _ in claim_cooperatively(requesting(fields), "secret", FakeClock().now()))
    assert steps >= written // (2 * idempotency.STEP_BYTES)
    assert steps >= 4


def test_neither_key_nor_body_nor_caller_can_be_read_from_a_claim() -> None:
    request = requesting({"input": "Hi"})
    claim = claim_of(request)
    assert len(claim.id) == len(claim.fingerprint) == 64
    assert claim_of(request, "other secret").id != claim.id
    moved = request.model_copy(update={"tenant": "tann", "user_id": ""})
    assert claim_of(moved).id != claim.id
    assert claim.expired_before == FakeClock().now() - timedelta(days=1)
