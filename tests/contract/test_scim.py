"""SCIM over real stores: an outside checker, the rights that follow, versions, filters, and whose directory it is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from backend.foundation.http.app import create_app
from backend.foundation.sql.database import Database
from backend.groups.domain import Group, GroupSource
from backend.groups.sql.store import SqlGroupStore
from backend.routes import ROUTERS, public_routers
from backend.scim.domain import LARGEST_PAGE, ScimTerms
from backend.scim.wiring import build_scim
from tests.contract.store_cases import T0, database_url, migrated
from tests.fakes.http_api import BASE_URL, FakeHouse

TOKEN = "scim-token-of-the-tests-0123456789ab"
BASE = f"{BASE_URL}/scim/v2/"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Directory(NamedTuple):
    """A directory of one tenant, called inside this process."""

    database: Database
    client: httpx2.AsyncClient

    @property
    def groups(self) -> SqlGroupStore:
        return SqlGroupStore(self.database)

    async def add_user(self, name: str, **attributes: Any) -> dict[str, Any]:
        answer = await self.client.post("Users", json=user_named(name, **attributes))
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def add_group(self, name: str, *users: dict[str, Any]) -> dict[str, Any]:
        answer = await self.client.post("Groups", json=group_named(name, *users))
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def patch(self, resource: dict[str, Any], op: str, path: str, value: Any = None) -> httpx2.Response:
        operation = {"op": op, "path": path} | ({} if value is None else {"value": value})
        where = f"{resource['meta']['resourceType']}s/{resource['id']}"
        return await self.client.patch(where, json={"schemas": [PATCH], "Operations": [operation]})

    async def found(self, kind: str, sought: str, **query: Any) -> list[str]:
        answer = await self.client.get(kind, params={"filter": sought, **query})
        assert answer.status_code == 200, answer.text
        return [each.get("userName") or each["displayName"] for each in answer.json().get("Resources", [])]


def user_named(name: str, **attributes: Any) -> dict[str, Any]:
    return {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": name, **attributes}


def group_named(name: str, *users: dict[str, Any]) -> dict[str, Any]:
    members = [{"value": each["id"], "display": "as some directories send it"} for each in users]
    return {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": name, "members": members}


def open_directory(database: Database, tenant: str = "acme", token: str = TOKEN) -> httpx2.AsyncClient:
    async def owned(_tenant: str, _member: str) -> list[str]:
        return []

    house = FakeHouse(max_body_bytes=8_000_000)
    part = build_scim(database, ScimTerms(token, tenant), owned, house.clock)
    routers = public_routers(beside_operators=False, page=False, signs_in=False, has_directory=True)
    app = create_app(routers, (*house.services(), *part.services), house.options())
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE, headers=headers)


@pytest.fixture(params=["sqlite", "postgresql"])
async def directory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Directory]:
    async with migrated(database_url(request.param, request, tmp_path)) as database, open_directory(database) as client:
        yield Directory(database, client)


class LoopTransport(httpx2.BaseTransport):
    """Lets a client that blocks its thread call an application on the event loop."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client, self._loop = client, asyncio.get_running_loop()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def send() -> httpx2.Response:
            return await self._client.request(
                request.method, request.url, content=request.read(), headers=request.headers
            )

        found = asyncio.run_coroutine_threadsafe(send(), self._loop).result()
        return httpx2.Response(found.status_code, headers=found.headers, content=found.content)


async def test_an_outside_checker_finds_nothing(directory: Directory) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    client = httpx2.Client(transport=LoopTransport(directory.client), base_url=BASE, headers=headers)
    results = await asyncio.to_thread(check_server, SyncSCIMClient(client))
    wrong = [f"{each.title}: {each.reason}" for each in results if each.status not in (Status.SUCCESS, Status.SKIPPED)]
    assert wrong == []
    assert len(results) > 100
    assert {kind for each in results for kind in (each.resource_type or "",)} >= {"User", "Group"}


async def test_who_is_in_a_group_has_its_rights_at_once(directory: Directory) -> None:
    ann, bob = await directory.add_user("ann"), await directory.add_user("bob")
    group = await directory.add_group("sales", ann)
    assert await directory.groups.groups_of("acme", "ann") == {group["id"]}
    found = (await directory.groups.find("acme", [group["id"]]))[group["id"]]
    assert (found.name, found.source) == ("sales", GroupSource.SCIM)
    assert (await directory.patch(group, "add", "members", [{"value": bob["id"]}])).status_code == 204
    assert await directory.groups.groups_of("acme", "bob") == {group["id"]}
    assert (await directory.patch(group, "remove", f'members[value eq "{ann["id"]}"]')).status_code == 204
    assert await directory.groups.groups_of("acme", "ann") == frozenset()
    assert (await directory.client.delete(f"Groups/{group['id']}")).status_code == 204
    assert await directory.groups.groups_of("acme", "bob") == frozenset()


async def test_an_inactive_user_keeps_the_place_and_loses_the_right(directory: Directory) -> None:
    ann = await directory.add_user("ann")
    group = await directory.add_group("sales", ann)
    assert (await directory.patch(ann, "replace", "active", False)).status_code == 204
    assert (await directory.client.get(f"Users/{ann['id']}")).json()["active"] is False
    assert await directory.groups.groups_of("acme", "ann") == frozenset()
    shown = (await directory.client.get(f"Groups/{group['id']}")).json()
    assert [each["value"] for each in shown["members"]] == [ann["id"]]
    other = await directory.add_group("support", ann)
    assert await directory.groups.groups_of("acme", "ann") == frozenset()
    assert (await directory.patch(ann, "replace", "active", True)).status_code == 204
    assert await directory.groups.groups_of("acme", "ann") == {group["id"], other["id"]}


async def test_rights_follow_a_new_name_and_go_with_the_user(directory: Directory) -> None:
    ann = await directory.add_user("ann")
    group = await directory.add_group("sales", ann)
    assert (await directory.patch(ann, "replace", "userName", "anna")).status_code == 204
    assert await directory.groups.groups_of("acme", "ann") == frozenset()
    assert await directory.groups.groups_of("acme", "anna") == {group["id"]}
    assert (await directory.client.delete(f"Users/{ann['id']}")).status_code == 204
    assert await directory.groups.groups_of("acme", "anna") == frozenset()
    assert (await directory.client.get(f"Users/{ann['id']}")).status_code == 404


async def test_a_user_is_shown_as_sent_without_the_password(directory: Directory) -> None:
    emails = [{"value": "ann@example.com", "primary": True}]
    ann = await directory.add_user("ann", externalId="e-1", emails=emails, password="never kept")
    group = await directory.add_group("sales", ann)
    shown = (await directory.client.get(f"Users/{ann['id']}")).json()
    assert (shown["externalId"], shown["active"], shown["emails"]) == ("e-1", True, emails)
    assert [(each["value"], each["display"]) for each in shown["groups"]] == [(group["id"], "sales")]
    rows = await directory.database.read(lambda work: work.exec_driver_sql("SELECT * FROM scim_user").all())
    assert "never kept" not in repr(rows)


@pytest.mark.parametrize(
    ("sought", "names"),
    [
        ('userName eq "ANN"', ["ann"]),
        ('externalId eq "e-bob"', ["bob"]),
        ("active eq false", ["bob"]),
        ('active eq true and userName eq "bob"', []),
        ('emails.value co "bob@"', ["bob"]),
        ('userName sw "a" or title pr', ["ann", "cem"]),
        ('not (userName eq "ann")', ["bob", "cem"]),
        ('userName eq "ann" and userName eq "bob"', []),
        ('groups.display eq "sales"', ["ann"]),
        ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "cem"', ["cem"]),
    ],
)
async def test_filters_find_users(directory: Directory, sought: str, names: list[str]) -> None:
    ann = await directory.add_user("ann")
    await directory.add_user("bob", externalId="e-bob", active=False, emails=[{"value": "bob@example.com"}])
    await directory.add_user("cem", title="Dr")
    await directory.add_group("sales", ann)
    assert await directory.found("Users", sought) == names


async def test_filters_find_groups(directory: Directory) -> None:
    ann, bob = await directory.add_user("ann"), await directory.add_user("bob")
    await directory.add_group("sales", ann, bob)
    await directory.add_group("support", bob)
    assert await directory.found("Groups", 'displayName eq "SALES"') == ["sales"]
    assert await directory.found("Groups", f'members[value eq "{ann["id"]}"]') == ["sales"]
    assert await directory.found("Groups", f'members.value eq "{bob["id"]}"') == ["sales", "support"]
    assert await directory.found("Groups", 'members.type eq "User"') == ["sales", "support"]
    assert await directory.found("Groups", f'displayName sw "s" and members.value eq "{ann["id"]}"') == ["sales"]


@pytest.mark.parametrize("sought", ["userName eq", 'userName is "a"', "((", 'emails[value eq "a"', 'eq "a"'])
@pytest.mark.parametrize("kind", ["Users", "Groups"])
async def test_a_wrong_filter_is_an_error_of_scim(directory: Directory, kind: str, sought: str) -> None:
    answer = await directory.client.get(kind, params={"filter": sought})
    body = answer.json()
    assert (answer.status_code, body["scimType"], body["schemas"]) == (400, "invalidFilter", [ERROR])
    assert answer.headers["content-type"].startswith("application/scim+json")


async def test_pages_hold_each_user_once(directory: Directory) -> None:
    names = [f"user-{number:02}" for number in range(7)]
    for name in names:
        await directory.add_user(name)
    for query in ({}, {"filter": 'userName sw "user"'}):
        seen: list[str] = []
        for start in (1, 4, 7):
            answer = await directory.client.get("Users", params={"startIndex": start, "count": 3, **query})
            body = answer.json()
            assert (body["totalResults"], body["startIndex"]) == (7, start)
            seen += [each["userName"] for each in body["Resources"]]
        assert seen == names
    nothing = (await directory.client.get("Users", params={"count": 0})).json()
    assert (nothing["totalResults"], nothing.get("Resources", [])) == (7, [])


async def test_a_version_that_has_passed_changes_nothing(directory: Directory) -> None:
    ann = await directory.add_user("ann")
    where, first = f"Users/{ann['id']}", ann["meta"]["version"]
    unread = await directory.client.get(where, headers={"if-none-match": first})
    assert unread.status_code == 304
    assert (await directory.client.put(where, json=user_named("ann", title="Dr"))).status_code == 200
    late = await directory.client.put(where, json=user_named("ann"), headers={"if-match": first})
    assert (late.status_code, late.json()["schemas"]) == (412, [ERROR])
    assert (await directory.client.get(where)).json()["title"] == "Dr"


async def test_two_changes_of_a_group_at_once_lose_nothing(directory: Directory) -> None:
    users = [await directory.add_user(f"user-{number}") for number in range(6)]
    group = await directory.add_group("sales")
    adding = [directory.patch(group, "add", "members", [{"value": each["id"]}]) for each in users]
    answers = await asyncio.gather(*adding)
    assert {answer.status_code for answer in answers} == {204}
    assert list(await directory.groups.members(group["id"], "", 100)) == [each["userName"] for each in users]


@pytest.mark.parametrize(
    ("kind", "body", "status", "scim_type"),
    [
        ("Users", user_named("ANN"), 409, "uniqueness"),
        ("Groups", group_named("sales"), 409, "uniqueness"),
        ("Groups", group_named("new", {"id": "usr_unknown"}), 400, "invalidValue"),
        ("Users", user_named("a\nb"), 400, "invalidValue"),
        ("Users", {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"]}, 400, "invalidValue"),
    ],
)
async def test_what_is_refused_is_refused_in_scims_form(
    directory: Directory, kind: str, body: Any, status: int, scim_type: str
) -> None:
    await directory.add_user("ann")
    await directory.add_group("sales")
    answer = await directory.client.post(kind, json=body)
    shown = answer.json()
    assert (answer.status_code, shown.get("scimType"), shown["schemas"]) == (status, scim_type, [ERROR])


async def test_who_is_in_two_groups_by_one_name_is_told_so(directory: Directory) -> None:
    await directory.add_user("ann")
    bob = await directory.add_user("bob")
    await directory.add_group("sales")
    support = await directory.add_group("support")
    assert (await directory.patch(bob, "replace", "userName", "Ann")).status_code == 409
    assert (await directory.patch(support, "replace", "displayName", "sales")).status_code == 409
    assert await directory.found("Groups", "displayName pr") == ["sales", "support"]


@pytest.mark.parametrize("token", ["", "another-token-of-somebody-0123456789", "ä"])
@pytest.mark.parametrize("path", ["Users", "Groups/grp_1", "Schemas", "nothing"])
async def test_another_token_reads_nothing(directory: Directory, token: str, path: str) -> None:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    answer = await directory.client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["schemas"]) == (401, [ERROR])
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_two_tenants_see_nothing_of_each_other(directory: Directory) -> None:
    ann = await directory.add_user("ann")
    group = await directory.add_group("sales", ann)
    async with open_directory(directory.database, "other", "token-of-the-other-tenant-0123456789") as client:
        other = directory._replace(client=client)
        assert (await client.get("Users")).json()["totalResults"] == 0
        for where in (f"Users/{ann['id']}", f"Groups/{group['id']}"):
            assert (await client.get(where)).status_code == 404
            assert (await client.delete(where)).status_code == 404
        assert (await client.post("Groups", json=group_named("sales", ann))).status_code == 400
        assert (await other.add_user("ann"))["id"] != ann["id"]
        await other.add_group("sales")
    assert await directory.groups.groups_of("acme", "ann") == {group["id"]}
    assert await directory.groups.groups_of("other", "ann") == frozenset()


async def test_groups_of_others_are_none_of_a_directory(directory: Directory) -> None:
    made = Group(id="grp_api", tenant="acme", name="made here", source=GroupSource.API, created_at=T0)
    assert await directory.groups.create(made)
    assert (await directory.client.get("Groups")).json()["totalResults"] == 0
    assert (await directory.client.get("Groups/grp_api")).status_code == 404
    assert (await directory.client.delete("Groups/grp_api")).status_code == 404


def test_without_the_setting_there_are_no_such_routes() -> None:
    routers = public_routers(beside_operators=False, page=False, signs_in=False)
    paths = {getattr(route, "path", "") for router in (*ROUTERS, *routers) for route in router.routes}
    assert not [path for path in paths if "scim" in path]


@pytest.mark.whole
@pytest.mark.parametrize("directory", ["sqlite"], indirect=True)
async def test_ten_thousand_users_and_five_hundred_groups(directory: Directory) -> None:
    users = [await directory.add_user(f"user-{number:05}", externalId=f"e-{number}") for number in range(10_000)]
    groups = [
        await directory.add_group(f"group-{number:03}", *users[number * 20 : number * 20 + 40]) for number in range(500)
    ]
    seen: set[str] = set()
    for start in range(1, 10_001, LARGEST_PAGE):
        body = (await directory.client.get("Users", params={"startIndex": start, "count": LARGEST_PAGE})).json()
        assert body["totalResults"] == 10_000
        seen |= {each["id"] for each in body["Resources"]}
    assert seen == {each["id"] for each in users}
    assert await directory.found("Users", 'externalId eq "e-9999"') == ["user-09999"]
    assert len(await directory.found("Users", 'userName co "-0012"')) == 10
    assert await directory.found("Groups", 'displayName eq "GROUP-499"') == ["group-499"]
    everybody = [{"value": each["id"]} for each in users]
    assert (await directory.patch(groups[0], "replace", "members", everybody)).status_code == 204
    assert groups[0]["id"] in await directory.groups.groups_of("acme", "user-09999")
    assert (await directory.patch(users[9_999], "replace", "active", False)).status_code == 204
    assert await directory.groups.groups_of("acme", "user-09999") == frozenset()
