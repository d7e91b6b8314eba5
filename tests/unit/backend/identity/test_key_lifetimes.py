"""Keys that expire, are rotated, and tell when they were used last."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import cache
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from backend.identity.domain import ApiKey, KeyRole
from backend.identity.services import Authenticate, KeyAdministration, KeyUses
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.store_api_keys import FakeApiKeyStore

DAY = 86_400


@cache
def built_app() -> FastAPI:
    return FakeHouse().app()


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture
def app(house: FakeHouse) -> FastAPI:
    app = built_app()
    house.stand_behind(app)
    return app


@pytest.fixture
async def admin(house: FakeHouse, app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, await house.key("root", KeyRole.ADMIN)) as client:
        yield client


async def issued(admin: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await admin.post("/v1/api_keys", json={"user_id": "ada", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def shown(admin: httpx2.AsyncClient, key_id: str) -> dict[str, Any]:
    return (await admin.get(f"/v1/api_keys/{key_id}")).json()


async def status_with(app: FastAPI, key: str) -> int:
    async with client_of(app, key) as client:
        return (await client.get("/v1/models")).status_code


async def test_an_expired_key_is_refused_with_its_end(
    admin: httpx2.AsyncClient, app: FastAPI, house: FakeHouse
) -> None:
    ends_at = int(house.clock.now().timestamp()) + 60
    key = await issued(admin, expires_at=ends_at)
    assert key["expires_at"] == ends_at
    assert await status_with(app, key["key"]) == 200
    house.clock.advance(61)
    async with client_of(app, key["key"]) as client:
        refused = await client.get("/v1/models")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (401, "invalid_api_key")
    assert error["message"].startswith("The API key expired at 20")
    assert (await shown(admin, key["id"]))["expires_at"] == ends_at


@pytest.mark.parametrize("expires_at", [0, -1, 253_402_300_800, "tomorrow", 1.5])
async def test_an_end_that_is_none_is_refused(admin: httpx2.AsyncClient, expires_at: object) -> None:
    for path in ("/v1/api_keys", f"/v1/api_keys/{(await issued(admin))['id']}/rotate"):
        body = {"expires_at": expires_at} if "rotate" in path else {"user_id": "ada", "expires_at": expires_at}
        refused = await admin.post(path, json=body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "expires_at")


async def test_a_rotated_key_stays_valid_for_the_overlap(
    admin: httpx2.AsyncClient, app: FastAPI, house: FakeHouse
) -> None:
    now = int(house.clock.now().timestamp())
    old = await issued(admin, role="service", tenant="acme", expires_at=now + 90 * DAY)
    answer = await admin.post(f"/v1/api_keys/{old['id']}/rotate", json={"overlap_seconds": 60})
    new = answer.json()
    assert answer.status_code == 201
    assert {name: new[name] for name in ("user_id", "role", "tenant")} == {
        "user_id": "ada",
        "role": "service",
        "tenant": "acme",
    }
    assert new["expires_at"] == now + 90 * DAY
    assert new["key"] != old["key"]
    replaced = await shown(admin, old["id"])
    assert (replaced["expires_at"], replaced["replaced_by"]) == (now + 60, new["id"])
    async with client_of(app, old["key"], **{"X-Ballast-User": "eve"}) as client:
        assert (await client.get("/v1/models")).status_code == 200
        house.clock.advance(61)
        assert (await client.get("/v1/models")).status_code == 401
    async with client_of(app, new["key"], **{"X-Ballast-User": "eve"}) as client:
        assert (await client.get("/v1/models")).status_code == 200


async def test_a_rotation_without_a_body_leaves_a_day_but_no_more_than_was_left(
    admin: httpx2.AsyncClient, house: FakeHouse
) -> None:
    now = int(house.clock.now().timestamp())
    for ends_at, expected in ((None, now + DAY), (now + 60, now + 60)):
        old = await issued(admin, **({"expires_at": ends_at} if ends_at else {}))
        new = (await admin.post(f"/v1/api_keys/{old['id']}/rotate")).json()
        assert (await shown(admin, old["id"]))["expires_at"] == expected
        assert new["expires_at"] == ends_at


async def test_what_cannot_be_rotated_is_refused(admin: httpx2.AsyncClient, app: FastAPI, house: FakeHouse) -> None:
    replaced = await issued(admin)
    new = (await admin.post(f"/v1/api_keys/{replaced['id']}/rotate")).json()
    expired = await issued(admin, expires_at=int(house.clock.now().timestamp()) + 1)
    house.clock.advance(2)
    keys = KeyAdministration(FakeApiKeyStore(house.state), house.clock, house.state.known_keys)
    await keys.set_admin_key("chosen by the operator")
    (configured,) = [key for key in house.state.api_keys.values() if key.user_id == "admin"]
    for key_id, words in (
        (replaced["id"], new["id"]),
        (expired["id"], "expired"),
        (configured.id, "BACKEND_ADMIN_KEY"),
    ):
        refused = await admin.post(f"/v1/api_keys/{key_id}/rotate")
        assert refused.status_code == 409
        assert words in refused.json()["error"]["message"]
    missing = await admin.post("/v1/api_keys/key_none/rotate")
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, "key_id")
    for body in ({"overlap_seconds": -1}, {"overlap_seconds": 30 * DAY + 1}):
        wrong = await admin.post(f"/v1/api_keys/{new['id']}/rotate", json=body)
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "overlap_seconds")
    async with client_of(app, await house.key("ada")) as user:
        assert (await user.post(f"/v1/api_keys/{new['id']}/rotate")).status_code == 403


class CountingStore(FakeApiKeyStore):
    """Counts the writes of uses."""

    writes = 0

    async def note_uses(self, uses: Any, unless_since: Any) -> None:
        self.writes += 1
        await super().note_uses(uses, unless_since)


async def test_uses_are_written_later_and_together() -> None:
    house = FakeHouse()
    store = CountingStore(house.state)
    authenticate = Authenticate(store, house.clock, house.state.known_keys)
    key, secret = await KeyAdministration(store, house.clock, house.state.known_keys).issue("ada", KeyRole.USER)
    for _ in range(5):
        await authenticate.user(secret, None)
        house.clock.advance(1)
    assert store.writes == 0
    assert (await only(store)).last_used_at is None
    await authenticate.uses.write()
    used = (await only(store)).last_used_at
    assert used == house.clock.now() - timedelta(seconds=1)
    assert store.writes == 1
    house.clock.advance(120)
    await authenticate.uses.write()
    assert (await only(store)).last_used_at == used
    assert key.last_used_at is None


async def test_a_use_during_the_write_is_not_lost() -> None:
    house = FakeHouse()

    class UsingStore(FakeApiKeyStore):
        async def note_uses(self, uses: Any, unless_since: Any) -> None:
            await super().note_uses(uses, unless_since)
            if house.clock.now() < later:
                house.clock.advance(61)
                noted.note("key_a", house.clock.now())

    noted, later = KeyUses(UsingStore(house.state)), house.clock.now() + timedelta(seconds=60)
    key, _ = await KeyAdministration(FakeApiKeyStore(house.state), house.clock, house.state.known_keys).issue(
        "ada", KeyRole.USER
    )
    house.state.api_keys = {"key_a": key.model_copy(update={"id": "key_a"})}
    noted.note("key_a", house.clock.now())
    await noted.write()
    await noted.write()
    assert house.state.api_keys["key_a"].last_used_at == house.clock.now()


async def only(store: FakeApiKeyStore) -> ApiKey:
    (key,) = await store.page(None, 2, descending=False)
    return key
