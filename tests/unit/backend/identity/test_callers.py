"""Who calls: keys, roles, and services that act for users."""

import httpx2
import pytest
from fastapi import FastAPI

from backend.identity.domain import KeyRole
from backend.identity.services import KeyAdministration, hash_of
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import SERVICE_TOKEN, FakeHouse, client_of
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_state import StoreState

ADDRESS = "/v1/conversations/conv_none"


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "wrong"])
async def test_without_a_known_key_it_is_401(stranger: httpx2.AsyncClient, header: str | None) -> None:
    answer = await stranger.get(ADDRESS, headers={} if header is None else {"authorization": header})
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_of_odd_characters_is_only_unknown(stranger: httpx2.AsyncClient) -> None:
    answer = await stranger.get(ADDRESS, headers=[(b"authorization", b"Bearer \xff\xfe")])
    assert answer.status_code == 401


async def test_the_scheme_is_not_case_sensitive(house: FakeHouse, stranger: httpx2.AsyncClient) -> None:
    answer = await stranger.get(ADDRESS, headers={"authorization": f"bearer {await house.key()}"})
    assert answer.status_code == 404


async def test_a_revoked_key_is_refused_at_once(house: FakeHouse, app: FastAPI, user: httpx2.AsyncClient) -> None:
    assert (await user.get(ADDRESS)).status_code == 404
    key_ids = list(house.state.api_keys)
    async with client_of(app, await house.key("root", KeyRole.ADMIN)) as admin:
        for key_id in key_ids:
            assert (await admin.delete(f"/v1/api_keys/{key_id}")).status_code == 200
    assert (await user.get(ADDRESS)).status_code == 401


async def test_a_service_says_for_whom_it_acts(house: FakeHouse, app: FastAPI) -> None:
    service_key = await house.key("portal", KeyRole.SERVICE)
    async with client_of(app, service_key) as service:
        nobody = await service.get(ADDRESS)
        created = await service.post("/v1/conversations", json={}, headers={"X-Ballast-User": "ada"})
        odd = await service.get(ADDRESS, headers=[(b"X-Ballast-User", b"a\x07b")])
        long = await service.get(ADDRESS, headers={"X-Ballast-User": "a" * 257})
    assert (nobody.status_code, nobody.json()["error"]["param"]) == (400, "X-Ballast-User")
    assert (odd.status_code, long.status_code) == (400, 400)
    async with client_of(app, await house.key("ada")) as ada:
        assert (await ada.get(f"/v1/conversations/{created.json()['id']}")).status_code == 200


async def test_a_service_stays_in_its_tenant(house: FakeHouse, app: FastAPI) -> None:
    async with client_of(app, await house.key("portal", KeyRole.SERVICE, "other")) as service:
        created = await service.post("/v1/conversations", json={}, headers={"X-Ballast-User": "ada"})
    async with client_of(app, await house.key("ada")) as ada:
        assert (await ada.get(f"/v1/conversations/{created.json()['id']}")).status_code == 404


async def test_a_user_acts_for_himself_only(user: httpx2.AsyncClient) -> None:
    assert (await user.get(ADDRESS, headers={"X-Ballast-User": "eve"})).status_code == 403
    assert (await user.get(ADDRESS, headers={"X-Ballast-User": "ada"})).status_code == 404


@pytest.mark.parametrize("role", [KeyRole.USER, KeyRole.SERVICE])
@pytest.mark.parametrize("second", ["ada", "eve", ""])
async def test_a_user_who_is_named_twice_is_nobody(house: FakeHouse, app: FastAPI, role: KeyRole, second: str) -> None:
    named = [("X-Ballast-User", "ada"), ("x-ballast-user", second)]
    async with client_of(app, await house.key("ada", role)) as client:
        answer = await client.get(ADDRESS, headers=named)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "X-Ballast-User")


@pytest.mark.parametrize("path", [ADDRESS, "/v1/api_keys", "/internal/v1/knowledge/documents"])
async def test_two_keys_are_refused(house: FakeHouse, stranger: httpx2.AsyncClient, path: str) -> None:
    keys = [await house.key("root", KeyRole.ADMIN), SERVICE_TOKEN]
    for first, second in (keys, keys[::-1]):
        both = [("Authorization", f"Bearer {first}"), ("Authorization", f"Bearer {second}")]
        answer = await stranger.request("POST" if "internal" in path else "GET", path, headers=both)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Authorization")


async def test_a_comma_is_part_of_a_user_id(house: FakeHouse, app: FastAPI) -> None:
    async with client_of(app, await house.key("portal", KeyRole.SERVICE)) as service:
        created = await service.post("/v1/conversations", json={}, headers={"X-Ballast-User": "ada, eve"})
    for user_id, status in (("ada, eve", 200), ("ada", 404), ("eve", 404)):
        async with client_of(app, await house.key(user_id)) as client:
            assert (await client.get(f"/v1/conversations/{created.json()['id']}")).status_code == status


@pytest.mark.parametrize("role", [KeyRole.USER, KeyRole.SERVICE])
async def test_only_administrators_see_keys(house: FakeHouse, app: FastAPI, role: KeyRole) -> None:
    async with client_of(app, await house.key("ada", role)) as client:
        answer = await client.get("/v1/api_keys", headers={"X-Ballast-User": "ada"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")


async def test_keys_are_issued_listed_and_revoked(admin: httpx2.AsyncClient, app: FastAPI, house: FakeHouse) -> None:
    house.clock.advance(1)
    issued = await admin.post("/v1/api_keys", json={"user_id": "ada", "role": "user"})
    body = issued.json()
    assert issued.status_code == 201
    lifetime = {"expires_at": None, "last_used_at": None, "origin": "issued", "replaced_by": None}
    limits = dict.fromkeys(("turns_per_minute", "tokens_per_minute", "turns_at_once"))
    assert {"id", "object", "user_id", "role", "tenant", "created_at", "key", *lifetime, *limits} == set(body)
    assert {name: body[name] for name in lifetime} == lifetime
    assert (body["object"], body["tenant"]) == ("api_key", "default")
    listed = (await admin.get("/v1/api_keys")).json()
    assert [key["user_id"] for key in listed["data"]] == ["root", "ada"]
    assert body["key"] not in (await admin.get("/v1/api_keys")).text
    assert "key" not in (await admin.get(f"/v1/api_keys/{body['id']}")).json()
    async with client_of(app, body["key"]) as ada:
        assert (await ada.get(ADDRESS)).status_code == 404
        gone = (await admin.delete(f"/v1/api_keys/{body['id']}")).json()
        assert gone == {"id": body["id"], "object": "api_key.deleted", "deleted": True}
        assert (await ada.get(ADDRESS)).status_code == 401
    for method in ("DELETE", "GET"):
        answer = await admin.request(method, f"/v1/api_keys/{body['id']}")
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "key_id")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "user_id"),
        ({"user_id": ""}, "user_id"),
        ({"user_id": "a\nb"}, "user_id"),
        ({"user_id": " a"}, "user_id"),
        ({"user_id": "x" * 257}, "user_id"),
        ({"user_id": "ada", "role": "god"}, "role"),
        ({"user_id": "ada", "tenant": 5}, "tenant"),
        ({"user_id": "ada", "colour": "blue"}, "colour"),
    ],
)
async def test_a_wrong_key_request_names_its_field(admin: httpx2.AsyncClient, body: object, param: str) -> None:
    answer = await admin.post("/v1/api_keys", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_the_first_admin_key_is_made_once() -> None:
    state = StoreState()
    keys = KeyAdministration(FakeApiKeyStore(state), FakeClock(), state.known_keys)
    for _ in range(2):
        await keys.set_admin_key("chosen by the operator")
    (only,) = state.api_keys.values()
    assert (only.role, only.key_hash) == (KeyRole.ADMIN, hash_of("chosen by the operator"))
    assert "chosen" not in only.model_dump_json()


async def test_keys_are_listed_page_by_page(admin: httpx2.AsyncClient) -> None:
    made = [(await admin.post("/v1/api_keys", json={"user_id": f"user {number}"})).json()["id"] for number in range(3)]
    whole = (await admin.get("/v1/api_keys")).json()
    ids = [key["id"] for key in whole["data"]]
    assert set(made) < set(ids)
    assert whole["has_more"] is False
    first = (await admin.get("/v1/api_keys?limit=2")).json()
    rest = (await admin.get(f"/v1/api_keys?after={first['last_id']}")).json()
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert [key["id"] for key in (*first["data"], *rest["data"])] == ids
    newest = (await admin.get("/v1/api_keys?order=desc")).json()
    assert [key["id"] for key in newest["data"]] == ids[::-1]


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [
        ("limit=0", 400, "limit"),
        ("limit=1001", 400, "limit"),
        ("order=up", 400, "order"),
        ("after=key_z", 404, "after"),
    ],
)
async def test_a_wrong_page_of_keys_is_refused(admin: httpx2.AsyncClient, query: str, status: int, param: str) -> None:
    answer = await admin.get(f"/v1/api_keys?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
