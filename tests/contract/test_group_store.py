"""One contract for every `GroupStore`, and for the rights that stores of bases give through groups."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.groups.domain import ClaimedSet, Group, GroupSource, digest_names, name_group
from backend.groups.ports import GroupStore
from backend.groups.sql.store import SqlGroupStore
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Conflict, NotFound
from tests.contract.knowledge_cases import T0, make_base
from tests.contract.store_cases import database_url, migrated
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.store_knowledge import FakeKnowledge


class Stores(NamedTuple):
    groups: GroupStore
    knowledge: KnowledgeStore

    async def binding(self, user_id: str, base_id: str = "kb_a", tenant: str = "acme") -> Binding | None:
        """Return the binding, which is the same alone and among all."""
        (one, *_) = (*await self.knowledge.bindings(tenant, user_id, [base_id]), None)
        every = await self.knowledge.bindings(tenant, user_id, None)
        among = await self.knowledge.bindings(tenant, user_id, [base_id, "kb_other"])
        assert [found for found in every if found.base.id == base_id] == ([one] if one is not None else [])
        assert [found for found in among if found.base.id == base_id] == ([one] if one is not None else [])
        return one

    async def claim(self, user_id: str, names: list[str], issued_at: int) -> None:
        said = ClaimedSet(digest_names(names), issued_at)
        groups = {name: group_named(name, GroupSource.CLAIM) for name in names}
        await self.groups.set_claimed("acme", user_id, groups, said)

    async def names_of(self, user_id: str) -> list[str]:
        found = await self.groups.find("acme", await self.groups.groups_of("acme", user_id))
        return sorted(group.name for group in found.values())


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    if request.param == "fake":
        fake = FakeKnowledge()
        yield Stores(fake.groups, fake)
        return
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        yield Stores(SqlGroupStore(database), knowledge_store(database, FakeClock()))


def group_named(name: str, source: GroupSource = GroupSource.API, tenant: str = "acme") -> Group:
    return Group(id=f"grp_{tenant}_{source}_{name}", tenant=tenant, name=name, source=source, created_at=T0)


async def new_group(stores: Stores, name: str, *user_ids: str, tenant: str = "acme") -> Group:
    group = group_named(name, tenant=tenant)
    assert await stores.groups.create(group)
    await stores.groups.change_members(group, user_ids, ())
    return group


async def test_a_group_comes_back_and_its_name_is_its_own(stores: Stores) -> None:
    group = await new_group(stores, "/sales/emea")
    assert await stores.groups.find("acme", [group.id, "grp_x"]) == {group.id: group}
    assert await stores.groups.find("other", [group.id]) == {}
    assert not await stores.groups.create(group.model_copy(update={"id": "grp_2"}))
    assert await stores.groups.create(group_named("/sales/emea", GroupSource.CLAIM))
    assert await stores.groups.create(group_named("/sales/emea", tenant="other"))


async def test_a_group_is_renamed_and_deleted(stores: Stores) -> None:
    group, other = await new_group(stores, "a", "ann"), await new_group(stores, "b")
    assert await stores.groups.replace(group.model_copy(update={"name": "c", "external_id": "x"}))
    assert not await stores.groups.replace(group.model_copy(update={"name": other.name}))
    assert not await stores.groups.replace(group_named("gone"))
    assert (await stores.groups.find("acme", [group.id]))[group.id].name == "c"
    assert not await stores.groups.delete("other", group.id)
    assert await stores.groups.delete("acme", group.id)
    assert not await stores.groups.delete("acme", group.id)
    assert await stores.groups.groups_of("acme", "ann") == frozenset()


async def test_pages_of_groups_and_of_those_in_them(stores: Stores) -> None:
    groups = [await new_group(stores, name, "ann" if name != "c" else "bob") for name in "abcde"]
    everything = await stores.groups.page("acme", None, None, 10, descending=False)
    assert everything == tuple(sorted(groups, key=lambda group: group.id))
    assert await stores.groups.page("acme", None, everything[1], 2, descending=False) == everything[2:4]
    assert await stores.groups.page("acme", None, everything[3], 9, descending=True) == everything[2::-1]
    assert [group.name for group in await stores.groups.page("acme", "ann", None, 9, descending=False)] == [*"abde"]
    changed = await stores.groups.change_members(groups[0], ["cid", "ann", "bob"], ["dan"])
    assert changed[1] == 0
    assert await stores.groups.members(groups[0].id, "", 2) == ["ann", "bob"]
    assert await stores.groups.members(groups[0].id, "bob", 2) == ["cid"]
    with pytest.raises(NotFound):
        await stores.groups.change_members(group_named("gone"), ["ann"], ())


async def test_one_who_is_put_in_or_taken_out_is_counted(stores: Stores) -> None:
    group = await new_group(stores, "a")
    assert await stores.groups.change_members(group, ["ann"], ()) == (1, 0)
    assert await stores.groups.change_members(group, ["ann"], ()) == (0, 0)
    assert await stores.groups.change_members(group, (), ["ann"]) == (0, 1)
    assert await stores.groups.change_members(group, (), ["ann"]) == (0, 0)


async def test_of_all_ways_to_a_base_the_strictest_role_counts(stores: Stores) -> None:
    await stores.knowledge.create_base(make_base(), "ann")
    owners, analysts = await new_group(stores, "owners", "bob"), await new_group(stores, "analysts", "bob")
    await stores.knowledge.set_member("kb_a", name_group(owners.id), MemberRole.OWNER)
    assert await stores.binding("bob") == Binding(base=make_base(), role=MemberRole.OWNER, via=owners.id)
    await stores.knowledge.set_member("kb_a", name_group(analysts.id), MemberRole.RESTRICTED_ANALYST)
    assert await stores.binding("bob") == Binding(base=make_base(), role=MemberRole.RESTRICTED_ANALYST, via=analysts.id)
    await stores.knowledge.set_member("kb_a", "bob", MemberRole.RESTRICTED_ANALYST)
    assert await stores.binding("bob") == Binding(base=make_base(), role=MemberRole.RESTRICTED_ANALYST)
    await stores.groups.change_members(analysts, (), ["bob"])
    await stores.knowledge.set_member("kb_a", "bob", MemberRole.EDITOR)
    assert await stores.binding("bob") == Binding(base=make_base(), role=MemberRole.EDITOR)
    await stores.knowledge.remove_member("kb_a", "bob")
    await stores.groups.delete("acme", owners.id)
    assert await stores.binding("bob") is None


async def test_a_group_gives_nothing_in_another_tenant(stores: Stores) -> None:
    await stores.knowledge.create_base(make_base(), "ann")
    mine, other = await new_group(stores, "a", "bob"), await new_group(stores, "a", "bob", "eve", tenant="other")
    await stores.knowledge.set_member("kb_a", name_group(mine.id), MemberRole.READER)
    await stores.knowledge.set_member("kb_a", name_group(other.id), MemberRole.OWNER)
    assert await stores.binding("bob", tenant="other") is None
    assert await stores.binding("eve") is None
    assert await stores.binding("bob") == Binding(base=make_base(), role=MemberRole.READER, via=mine.id)


async def test_a_user_who_is_called_like_a_group_has_nothing_of_it(stores: Stores) -> None:
    await stores.knowledge.create_base(make_base(), "ann")
    group = await new_group(stores, "a", "bob")
    await stores.knowledge.set_member("kb_a", name_group(group.id), MemberRole.READER)
    assert await stores.binding(group.id) is None


async def test_the_last_owner_may_be_a_group_with_somebody_in_it(stores: Stores) -> None:
    await stores.knowledge.create_base(make_base(), "ann")
    group = await new_group(stores, "owners")
    await stores.knowledge.set_member("kb_a", name_group(group.id), MemberRole.OWNER)
    with pytest.raises(Conflict):
        await stores.knowledge.remove_member("kb_a", "ann")
    await stores.groups.change_members(group, ["bob"], ())
    assert await stores.knowledge.remove_member("kb_a", "ann")
    with pytest.raises(Conflict):
        await stores.knowledge.set_member("kb_a", name_group(group.id), MemberRole.READER)
    assert await stores.knowledge.members("kb_a") == {name_group(group.id): MemberRole.OWNER}


async def test_a_newer_token_replaces_what_an_older_one_said(stores: Stores) -> None:
    await stores.claim("ann", ["/a", "/a/b"], 100)
    assert await stores.names_of("ann") == ["/a", "/a/b"]
    await stores.claim("ann", ["/a/b", "c"], 200)
    assert await stores.names_of("ann") == ["/a/b", "c"]
    await stores.claim("ann", ["/a"], 199)
    assert await stores.names_of("ann") == ["/a/b", "c"]
    assert await stores.groups.find_claimed("acme", "ann") == ClaimedSet(digest_names(["/a/b", "c"]), 200)
    assert await stores.groups.find_claimed("acme", "bob") is None
    await stores.claim("ann", [], 201)
    assert await stores.names_of("ann") == []


async def test_of_two_tokens_of_one_second_only_what_both_name_stays(stores: Stores) -> None:
    await stores.claim("ann", ["a", "b"], 100)
    await stores.claim("ann", ["b", "c"], 100)
    await stores.claim("ann", ["a", "b"], 100)
    assert await stores.names_of("ann") == ["b"]


async def test_what_tokens_say_leaves_other_groups_and_other_users_alone(stores: Stores) -> None:
    await new_group(stores, "team", "ann")
    await stores.claim("bob", ["a"], 300)
    await stores.claim("ann", ["a"], 100)
    await stores.claim("ann", [], 200)
    assert (await stores.names_of("ann"), await stores.names_of("bob")) == (["team"], ["a"])


async def test_a_thousand_groups_of_two_tokens_at_once(stores: Stores) -> None:
    names = [f"/group/{number}" for number in range(1_000)]
    await asyncio.gather(stores.claim("ann", names, 100), stores.claim("ann", names[:500], 200))
    assert await stores.names_of("ann") == sorted(names[:500])
