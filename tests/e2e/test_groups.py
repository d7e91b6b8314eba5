"""Attacks by way of groups: no right beyond the strictest, in no other tenant, and none after its loss."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client.knowledge_bases import Base, file_search, new_base, searches
from tests.e2e.pair import ADMIN_KEY, Pair, lone_backend
from tests.e2e.turns import bare_client, live_events, turn
from tests.fakes.identity_provider import AUDIENCE, ISSUER, IdentityProvider, served
from tests.fakes.model_server import FakeModelControl, Fault, Reply
from tests.servers.services import Launch

BODIES: dict[str, dict[str, Any]] = {
    "PATCH /v1/knowledge_bases/{base_id}": {"name": "Mine"},
    "POST /v1/knowledge_bases/{base_id}/search": {"query": "zinfandel"},
    "PUT /v1/knowledge_bases/{base_id}/members/{user_id}": {"role": "owner"},
    "PUT /v1/knowledge_bases/{base_id}/members/groups/{group_id}": {"role": "owner"},
    "POST /v1/vector_stores/{vector_store_id}": {"name": "Mine"},
    "POST /v1/vector_stores/{vector_store_id}/search": {"query": "zinfandel"},
    "POST /v1/vector_stores/{vector_store_id}/files": {"file_id": "file-1"},
    "POST /v1/vector_stores/{vector_store_id}/files/{file_id}": {"attributes": {"team": "red"}},
    "POST /v1/vector_stores/{vector_store_id}/file_batches": {"file_ids": ["file-1"]},
}
QUERIES = {"GET /v1/knowledge_bases/{base_id}/chunks": {"document": "a.md"}}
SECRET = "The zinfandel lies in the deepest cellar."


def new_group(pair: Pair, name: str, *user_ids: str, admin: str = ADMIN_KEY) -> str:
    """Make a group of the administrator's tenant with these users."""
    with pair.http(admin) as http:
        created = http.post("/v1/groups", json={"name": name})
        assert created.status_code == 201, created.text
        for user_id in user_ids:
            put = http.put(f"/v1/groups/{created.json()['id']}/members/{user_id}")
            assert put.status_code == 201, put.text
    return str(created.json()["id"])


def give(pair: Pair, base: Base, group_id: str, role: str) -> None:
    with pair.http(pair.key("ann")) as ann:
        put = ann.put(f"/v1/knowledge_bases/{base.id}/members/groups/{group_id}", json={"role": role})
    assert put.status_code in (200, 201), put.text


def take_out(pair: Pair, group_id: str, user_id: str) -> None:
    with pair.http(ADMIN_KEY) as admin:
        assert admin.delete(f"/v1/groups/{group_id}/members/{user_id}").status_code == 200


def routes_of_bases(pair: Pair) -> list[tuple[str, str]]:
    """Return method and path of each route that takes a base, those that delete it last."""
    with pair.http("") as http:
        paths = http.get("/openapi.json").json()["paths"]
    named = [
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if "{base_id}" in path or "{vector_store_id}" in path
    ]
    return sorted(named, key=lambda route: (route[0] == "DELETE" and route[1].count("{") == 1, route))


def attempts(pair: Pair, key: str, base: Base, group_id: str) -> dict[str, tuple[int, bool]]:
    """Call each route as one user; return for each the status, and whether the answer holds text of the base."""
    names = {"base_id": base.id, "vector_store_id": base.id, "name": "a.md", "user_id": "mallory", "group_id": group_id}
    names |= {"file_id": base.file_ids["a.md"], "batch_id": "vsfb_1"}
    found: dict[str, tuple[int, bool]] = {}
    with pair.http(key) as http:
        for method, path in routes_of_bases(pair):
            route = f"{method} {path}"
            address = re.sub(r"\{(\w+)\}", lambda part: names[part[1]], path)
            body = {"content": b"Mine."} if "/documents/" in path and method == "PUT" else {}
            given: dict[str, Any] = {"json": BODIES[route]} if route in BODIES else body
            answer = http.request(method, address, params=QUERIES.get(route), **given)
            found[route] = (answer.status_code, "deepest" in answer.text)
    return found


@pytest.fixture
def base(pair: Pair, request: pytest.FixtureRequest) -> Base:
    """A base of ann's with a secret, and a restricted analyst of her own."""
    return new_base(pair, f"attacked by {request.node.name}", {"a.md": SECRET}, ana="restricted_analyst")


def test_an_owner_by_one_group_who_is_restricted_by_another_is_restricted_on_every_route(
    pair: Pair, base: Base
) -> None:
    owners, analysts = new_group(pair, f"owners of {base.id}", "bea"), new_group(pair, f"analysts of {base.id}", "bea")
    give(pair, base, owners, "owner")
    give(pair, base, analysts, "restricted_analyst")
    restricted = attempts(pair, pair.key("ana"), base, owners)
    assert len(restricted) >= 28
    assert attempts(pair, pair.key("bea"), base, owners) == restricted
    assert {(status < 500, is_told) for status, is_told in restricted.values()} == {(True, False)}
    take_out(pair, owners, "bea")
    take_out(pair, analysts, "bea")
    assert attempts(pair, pair.key("bea"), base, owners) == attempts(pair, pair.key("zed"), base, owners)


def test_groups_of_another_tenant_open_nothing(pair: Pair, base: Base) -> None:
    mine = new_group(pair, f"owners of {base.id}", "eve")
    give(pair, base, mine, "owner")
    root = pair.key("root", "admin", "elsewhere")
    new_group(pair, f"owners of {base.id}", "eve", admin=root)
    strangers = attempts(pair, pair.key("zed", tenant="elsewhere"), base, mine)
    assert attempts(pair, pair.key("eve", tenant="elsewhere"), base, mine) == strangers
    assert {(status, is_told) for status, is_told in strangers.values()} <= {(404, False), (400, False)}
    with pair.http(root) as http:
        for method, path in (("GET", ""), ("DELETE", ""), ("PUT", "/members/eve"), ("DELETE", "/members/eve")):
            assert http.request(method, f"/v1/groups/{mine}{path}").status_code == 404


async def test_one_who_is_taken_out_of_a_group_in_mid_stream_reads_no_further(
    pair: Pair, model: FakeModelControl, base: Base
) -> None:
    readers = new_group(pair, f"readers of {base.id}", "bo")
    give(pair, base, readers, "reader")
    await model.script(searches("zinfandel"), Reply(text=("It lies ",), fault=Fault.ENDLESS))
    asked = {"input": "Where is it?", "stream": True, "tools": [file_search(base)]}
    async with bare_client(pair, "bo") as bo, bo.stream("POST", "/v1/responses", json=asked) as answer:
        events = live_events(answer)
        first = await anext(events)
        async for event in events:
            if event["type"] == "response.output_text.delta":
                break
        take_out(pair, readers, "bo")
        rest = [event async for event in events]
        assert any(event["type"] == "error" and "rights" in str(event) for event in rest)
        await bo.post(f"/v1/responses/{first['response']['id']}/cancel")


async def test_what_a_base_has_told_goes_with_the_group(pair: Pair, model: FakeModelControl, base: Base) -> None:
    readers = new_group(pair, f"readers of {base.id}", "cy")
    give(pair, base, readers, "reader")
    await model.script(searches("zinfandel"), Reply(text=("It lies in the deepest cellar.",)))
    async with bare_client(pair, "cy") as cy:
        said = await turn(cy, "Where is it?", tools=[file_search(base)])
        assert "deepest" in (await cy.get(f"/v1/responses/{said['id']}")).text
        with pair.http(ADMIN_KEY) as admin:
            assert admin.delete(f"/v1/groups/{readers}").status_code == 200
        assert "deepest" not in (await cy.get(f"/v1/responses/{said['id']}")).text
        refused = await cy.post("/v1/responses", json={"input": "Again", "tools": [file_search(base)]})
        assert refused.status_code == 404, refused.text


def test_a_thousand_groups_in_a_token_and_an_older_token(launch: Launch, tmp_path: Path) -> None:
    provider = IdentityProvider()
    with served(provider) as address:
        settings = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "JWKS_URL": address, "GROUPS_CLAIM": "groups"}
        backend = lone_backend(launch, tmp_path, **{f"BACKEND_JWT_{name}": value for name, value in settings.items()})
        base_url = f"/v1/knowledge_bases/{new_base(backend, 'cellar', {'a.md': SECRET}).id}"
        with backend.http(ADMIN_KEY) as admin:
            group = admin.post("/v1/groups", json={"name": "/cellar/999", "source": "claim"}).json()
        with backend.http(backend.key("ann")) as ann:
            put = ann.put(f"{base_url}/members/groups/{group['id']}", json={"role": "reader"})
            assert put.status_code == 201, put.text

        def ask(groups: Any, issued_at: int) -> int:
            token = provider.token(sub="bo", groups=groups, iat=issued_at)
            with backend.http(token) as bo:
                return bo.get(base_url).status_code

        now = int(datetime.now(UTC).timestamp())
        names = [f"/cellar/{number}" for number in range(1_000)]
        assert ask(["/cellar"], now - 60) == 404
        assert ask(names, now - 50) == 200
        assert ask(["/cellar/99"], now - 40) == 404
        assert ask(names, now - 50) == 404
        assert ask([*names, "one more"], now - 30) == 401
        # Without a token, by a key, the user has what the newest token said.
        with backend.http(backend.key("bo")) as bo:
            assert bo.get(base_url).status_code == 404
            assert ask(names, now - 20) == 200
            assert bo.get(base_url).status_code == 200
            assert ask(None, now - 10) == 404
            assert bo.get(base_url).status_code == 404
