"""One contract for every `AgentStore`."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole
from backend.agents.ports.agents import AgentEntry, AgentStore
from backend.agents.sql.store import SqlAgentStore
from backend.foundation.sql.chosen import open_database
from backend.migrations.migrate import migrate
from shared.errors import Conflict, NotFound
from tests.fakes.store_agents import FakeAgentStore

T0 = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
MOST = 3


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentStore]:
    if request.param == "fake":
        yield FakeAgentStore()
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    database = open_database(sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    try:
        await migrate(database)
        yield SqlAgentStore(database)
    finally:
        await database.close()


def agent(name: str = "helper", tenant: str = "acme", **fields: Any) -> Agent:
    definition = AgentDefinition.model_validate({"instructions": "Be brief.", **fields})
    return Agent(id=f"agent_{tenant}_{name}", tenant=tenant, name=name, created_at=T0, definition=definition)


async def test_an_agent_comes_back_with_its_owner(store: AgentStore) -> None:
    made = agent(
        tools=[{"type": "function", "name": "a", "parameters": {"type": "object", "x": None}}],
        parameters={
            "text": {"format": {"type": "json_schema", "name": "a", "schema": {"b": [1.5, None]}}},
            "stop": ["x"],
            "seed": 2**62,
        },
        knowledge_base_ids=["kb_b", "kb_a"],
    )
    assert await store.create(made, "ann", MOST)
    (found,) = await store.find("acme", "ann", ["helper", "other"])
    assert (found.agent, found.role) == (made, AgentRole.OWNER)
    (as_other,) = await store.find("acme", "bob", ["helper"])
    assert (as_other.agent, as_other.role) == (made, None)
    assert await store.find("other", "ann", ["helper"]) == ()
    assert await store.find("acme", "ann", []) == ()


async def test_names_are_unique_in_a_tenant(store: AgentStore) -> None:
    assert await store.create(agent(), "ann", MOST)
    again = agent().model_copy(update={"id": "agent_2"})
    assert not await store.create(again, "bob", MOST)
    assert await store.create(agent(tenant="other"), "bob", MOST)
    assert await store.members("agent_2") == {}


async def test_a_tenant_has_only_so_many(store: AgentStore) -> None:
    for name in ("a", "b", "c"):
        assert await store.create(agent(name), "ann", MOST)
    with pytest.raises(Conflict):
        await store.create(agent("d"), "ann", MOST)
    assert await store.create(agent("d", tenant="other"), "ann", MOST)


async def test_usable_are_own_ones_and_those_for_the_tenant(store: AgentStore) -> None:
    for name, visibility in (("b", "private"), ("a", "tenant")):
        assert await store.create(agent(name, visibility=visibility), "ann", MOST)
    assert await store.usable("acme", "ann") == (AgentEntry("a", T0), AgentEntry("b", T0))
    assert await store.usable("acme", "bob") == (AgentEntry("a", T0),)
    assert await store.usable("other", "ann") == ()
    assert await store.replace(
        "agent_acme_a", agent(visibility="private").definition, agent(visibility="tenant").definition
    )
    assert await store.usable("acme", "bob") == ()
    await store.set_member("agent_acme_b", "bob", AgentRole.READER)
    assert await store.usable("acme", "bob") == (AgentEntry("b", T0),)


async def test_replacing_and_deleting(store: AgentStore) -> None:
    assert await store.create(agent(), "ann", MOST)
    changed = agent(instructions="New.").definition
    assert await store.replace("agent_acme_helper", changed, agent().definition)
    assert not await store.replace("agent_acme_helper", agent().definition, agent().definition)
    (found,) = await store.find("acme", "ann", ["helper"])
    assert (found.agent.definition, found.agent.created_at) == (changed, T0)
    await store.delete("agent_acme_helper")
    assert not await store.replace("agent_acme_helper", changed, changed)
    assert await store.find("acme", "ann", ["helper"]) == ()
    assert await store.members("agent_acme_helper") == {}
    with pytest.raises(NotFound):
        await store.set_member("agent_acme_helper", "bob", AgentRole.READER)


async def test_members_and_the_last_owner(store: AgentStore) -> None:
    assert await store.create(agent(), "ann", MOST)
    assert await store.set_member("agent_acme_helper", "bob", AgentRole.EDITOR)
    assert not await store.set_member("agent_acme_helper", "bob", AgentRole.OWNER)
    assert await store.members("agent_acme_helper") == {"ann": AgentRole.OWNER, "bob": AgentRole.OWNER}
    assert await store.remove_member("agent_acme_helper", "ann")
    assert not await store.remove_member("agent_acme_helper", "ann")
    with pytest.raises(Conflict):
        await store.remove_member("agent_acme_helper", "bob")
    with pytest.raises(Conflict):
        await store.set_member("agent_acme_helper", "bob", AgentRole.READER)


async def test_agents_are_usable_by_members_and_where_the_tenant_may_use_them(store: AgentStore) -> None:
    private, shared = agent("a"), agent("b", visibility="tenant")
    for each in (private, shared, agent("c", tenant="other")):
        assert await store.create(each, "ann", MOST)
    ids = [private.id, shared.id, "agent_other_c", "agent_none"]
    assert await store.usable_among("acme", "ann", ids) == {private.id, shared.id}
    assert await store.usable_among("acme", "bob", ids) == {shared.id}
    assert await store.usable_among("acme", "ann", [private.id]) == {private.id}
    assert await store.usable_among("acme", "ann", []) == frozenset()
