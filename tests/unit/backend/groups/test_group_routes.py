"""Groups over HTTP: who may do what with them, and the roles that they give in bases and agents."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from backend.identity.domain import KeyRole
from tests.fakes.http_api import client_of
from tests.unit.backend.conftest import Members

GROUPS = "/v1/groups"
Client = httpx2.AsyncClient


async def new_group(admin: Client, name: str, *user_ids: str, **more: str) -> str:
    created = await admin.post(GROUPS, json={"name": name, **more})
    assert created.status_code == 201, created.text
    for user_id in user_ids:
        assert (await admin.put(f"{GROUPS}/{created.json()['id']}/members/{user_id}")).status_code == 201
    return str(created.json()["id"])


def refused(answer: httpx2.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


async def names(client: Client, **query: Any) -> list[str]:
    answer = await client.get(GROUPS, params=query)
    assert answer.status_code == 200, answer.text
    return [group["name"] for group in answer.json()["data"]]


@pytest.fixture
async def rae(members: Members) -> AsyncIterator[Client]:
    async with client_of(members.app, await members.house.key("rae")) as client:
        yield client


async def test_administrators_make_groups_and_others_see_those_that_they_are_in(admin: Client, user: Client) -> None:
    group_id, _ = await new_group(admin, "/sales/emea", "ada"), await new_group(admin, "support")
    assert sorted(await names(admin)) == ["/sales/emea", "support"]
    assert await names(user) == ["/sales/emea"]
    shown = (await user.get(f"{GROUPS}/{group_id}")).json()
    assert {**shown, "created_at": 0} == {
        "id": group_id,
        "object": "group",
        "name": "/sales/emea",
        "source": "api",
        "external_id": None,
        "created_at": 0,
    }
    for method, path in (("POST", ""), ("PATCH", f"/{group_id}"), ("DELETE", f"/{group_id}")):
        assert (await user.request(method, GROUPS + path, json={"name": "x"})).status_code == 403
    assert (await user.get(f"{GROUPS}/{group_id}/members")).status_code == 403
    assert (await user.put(f"{GROUPS}/{group_id}/members/eve")).status_code == 403


async def test_a_group_that_a_user_is_not_in_does_not_exist_for_them(admin: Client, user: Client) -> None:
    group_id = await new_group(admin, "support")
    assert refused(await user.get(f"{GROUPS}/{group_id}")) == (404, "group_id")


async def test_lists_come_in_pages(admin: Client) -> None:
    group_id = await new_group(admin, "a", "bob", "ann", "cid")
    for name in "bcd":
        await new_group(admin, name)
    every = (await admin.get(GROUPS, params={"limit": 100, "order": "asc"})).json()["data"]
    page = (await admin.get(GROUPS, params={"limit": 2, "order": "asc", "after": every[0]["id"]})).json()
    assert (page["data"], page["has_more"]) == (every[1:3], True)
    people = (await admin.get(f"{GROUPS}/{group_id}/members", params={"limit": 2})).json()
    assert ([each["user_id"] for each in people["data"]], people["has_more"]) == (["ann", "bob"], True)
    rest = (await admin.get(f"{GROUPS}/{group_id}/members", params={"after": people["last_id"]})).json()
    assert ([each["user_id"] for each in rest["data"]], rest["has_more"]) == (["cid"], False)


async def test_names_are_taken_once_and_renamed(admin: Client) -> None:
    group_id = await new_group(admin, "a")
    await new_group(admin, "b")
    assert refused(await admin.post(GROUPS, json={"name": "a"})) == (409, "name")
    assert refused(await admin.patch(f"{GROUPS}/{group_id}", json={"name": "b"})) == (409, "name")
    assert (await admin.patch(f"{GROUPS}/{group_id}", json={"name": "c"})).json()["name"] == "c"
    assert refused(await admin.post(GROUPS, json={"name": " a"})) == (400, "name")


async def test_a_group_of_tokens_is_not_changed_here(admin: Client) -> None:
    group_id = await new_group(admin, "/a/b", source="claim")
    for method, path in (("PUT", "/members/ada"), ("DELETE", "/members/ada"), ("PATCH", "")):
        body = {"name": "x"} if method == "PATCH" else None
        assert refused(await admin.request(method, f"{GROUPS}/{group_id}{path}", json=body)) == (409, "group_id")
    assert (await admin.delete(f"{GROUPS}/{group_id}")).status_code == 200
    assert refused(await admin.delete(f"{GROUPS}/{group_id}")) == (404, "group_id")


async def test_another_tenant_has_other_groups(members: Members, admin: Client) -> None:
    group_id = await new_group(admin, "a")
    key = await members.house.key("root", KeyRole.ADMIN, tenant="other")
    async with client_of(members.app, key) as other:
        assert await names(other) == []
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/members"), ("PUT", "/members/eve")):
            assert refused(await other.request(method, f"{GROUPS}/{group_id}{path}")) == (404, "group_id")
        await new_group(other, "a", "olga")
    place = f"{members.base}/members/groups/{await new_group(admin, 'b')}"
    assert (await members.owner.put(place, json={"role": "reader"})).status_code == 201
    foreign = f"{members.base}/members/groups/grp_of_another"
    assert refused(await members.owner.put(foreign, json={"role": "reader"})) == (404, "group_id")


async def test_a_group_is_a_member_of_a_base_with_the_strictest_role(
    members: Members, admin: Client, rae: Client
) -> None:
    group_id = await new_group(admin, "analysts", "rae", "new")
    place = f"{members.base}/members/groups/{group_id}"
    assert (await members.owner.get(place)).status_code == 404
    put = await members.owner.put(place, json={"role": "restricted_analyst"})
    shown = {
        "object": "knowledge_base.member",
        "user_id": None,
        "group_id": group_id,
        "group": "analysts",
        "role": "restricted_analyst",
    }
    assert (put.status_code, put.json()) == (201, shown)
    assert (await members.owner.get(place)).json() == shown
    listed = (await members.owner.get(f"{members.base}/members")).json()
    assert listed["data"][0] == shown
    assert [each["user_id"] for each in listed["data"][1:]] == ["ana", "ed", "olga", "rae"]
    assert listed["first_id"] == group_id
    assert (await rae.get(members.base)).json()["role"] == "restricted_analyst"
    assert (await rae.get(f"{members.base}/documents")).status_code == 403
    assert (await members.owner.put(place, json={"role": "owner"})).status_code == 200
    assert (await rae.get(members.base)).json()["role"] == "reader"
    assert (await members.owner.delete(place)).json()["id"] == group_id
    assert (await members.owner.get(place)).status_code == 404


async def test_only_owners_make_groups_members(members: Members, admin: Client, rae: Client) -> None:
    place = f"{members.base}/members/groups/{await new_group(admin, 'a', 'eve')}"
    for client in (rae, members.restricted, members.editor):
        assert (await client.put(place, json={"role": "owner"})).status_code == 403
        assert (await client.delete(place)).status_code == 403
    assert (await admin.put(place, json={"role": "owner"})).status_code == 404


async def test_an_owner_does_not_lose_a_base_by_a_group_that_they_are_in(members: Members, admin: Client) -> None:
    place = f"{members.base}/members/groups/{await new_group(admin, 'everybody', 'olga', 'eve')}"
    assert refused(await members.owner.put(place, json={"role": "reader"})) == (409, "role")
    assert (await members.owner.put(place, json={"role": "owner"})).status_code == 201


async def test_a_group_that_owns_alone_is_not_deleted(members: Members, admin: Client) -> None:
    group_id = await new_group(admin, "owners", "eve")
    await members.owner.put(f"{members.base}/members/groups/{group_id}", json={"role": "owner"})
    assert (await members.owner.delete(f"{members.base}/members/olga")).status_code == 200
    answer = await admin.delete(f"{GROUPS}/{group_id}")
    assert answer.status_code == 409
    assert members.base_id in answer.json()["error"]["message"]
    async with client_of(members.app, await members.house.key("eve")) as eve:
        assert refused(await eve.delete(f"{members.base}/members/groups/{group_id}")) == (409, "role")
        assert (await eve.put(f"{members.base}/members/olga", json={"role": "owner"})).status_code == 201
    assert (await admin.delete(f"{GROUPS}/{group_id}")).status_code == 200


async def test_a_deleted_group_is_no_member_any_more(members: Members, admin: Client) -> None:
    group_id = await new_group(admin, "a", "eve")
    place = f"{members.base}/members/groups/{group_id}"
    await members.owner.put(place, json={"role": "editor"})
    async with client_of(members.app, await members.house.key("eve")) as eve:
        assert (await eve.get(members.base)).status_code == 200
        assert (await admin.delete(f"{GROUPS}/{group_id}")).status_code == 200
        assert (await eve.get(members.base)).status_code == 404
    listed = (await members.owner.get(f"{members.base}/members")).json()["data"]
    assert [each["group_id"] for each in listed] == [None] * 4


async def test_a_group_is_a_member_of_an_agent(members: Members, admin: Client, rae: Client) -> None:
    agent = "/v1/agents/guide"
    assert (await members.owner.put(agent, json={"instructions": "Be brief."})).status_code == 201
    assert (await rae.get(agent)).status_code == 404
    group_id = await new_group(admin, "guides", "rae")
    place = f"{agent}/members/groups/{group_id}"
    assert (await members.owner.put(place, json={"role": "editor"})).status_code == 201
    assert (await rae.get(agent)).json()["role"] == "editor"
    assert [each["id"] for each in (await rae.get("/v1/agents")).json()["data"]] == ["guide"]
    await members.owner.put(f"{agent}/members/rae", json={"role": "reader"})
    assert (await rae.get(agent)).json()["role"] == "reader"
    assert [each["id"] for each in (await rae.get("/v1/agents")).json()["data"]] == ["guide"]
    shown = (await members.owner.get(f"{agent}/members")).json()["data"]
    assert [(each["group"], each["user_id"], each["role"]) for each in shown] == [
        ("guides", None, "editor"),
        (None, "olga", "owner"),
        (None, "rae", "reader"),
    ]
    assert (await members.owner.delete(place)).status_code == 200
    assert (await members.owner.delete(f"{agent}/members/rae")).status_code == 200
    assert (await rae.get(agent)).status_code == 404
