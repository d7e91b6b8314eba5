"""Agents over HTTP: who may do what, what is refused, and what is shown."""

from typing import Any

import httpx2
import pytest

from tests.fakes.http_api import uploaded
from tests.unit.backend.conftest import Members

AGENT = "/v1/agents/helper"


def error_of(answer: httpx2.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


@pytest.fixture
async def crew(members: Members) -> Members:
    """An agent over the base: Olga owns it, Ed edits it, Rae uses it; Ana and Sam are no members."""
    definition = {"instructions": "Be brief.", "knowledge_base_ids": [members.base_id]}
    assert (await members.owner.put(AGENT, json=definition)).status_code == 201
    for user_id, role in (("ed", "editor"), ("rae", "reader")):
        assert (await members.owner.put(f"{AGENT}/members/{user_id}", json={"role": role})).status_code == 201
    return members


async def test_an_agent_comes_back_with_all_its_fields(members: Members) -> None:
    given: dict[str, Any] = {
        "model": "demo-model",
        "instructions": "Be brief.",
        "knowledge_base_ids": [members.base_id],
        "knowledge_mode": "strict",
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
        "parameters": {
            "temperature": 0.2,
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}},
        },
        "visibility": "tenant",
        "placement": "classic",
        "reminder": "Stay calm.",
        "system_prompt": "You are Ballast.",
        "file_ids": [await uploaded(members.owner, "Tea is green.")],
    }
    created = await members.owner.put(AGENT, json=given)
    assert created.status_code == 201
    shown = created.json()
    assert {**given, "tools": shown["tools"], "parameters": shown["parameters"]} == {key: shown[key] for key in given}
    assert shown["tools"][0]["name"] == "weather"
    assert shown["parameters"]["temperature"] == 0.2
    assert shown["parameters"]["text"]["format"]["schema"] == {"type": "object"}
    assert (shown["id"], shown["object"], shown["name"], shown["role"]) == ("helper", "agent", "helper", "owner")
    assert (await members.owner.get(AGENT)).json() == shown
    replaced = await members.owner.put(AGENT, json={})
    assert (replaced.status_code, replaced.json()["instructions"]) == (200, "")
    assert replaced.json()["created_at"] == shown["created_at"]


async def test_files_are_those_of_who_names_them_or_of_the_agent(crew: Members) -> None:
    mine, theirs = await uploaded(crew.owner, "Tea."), await uploaded(crew.editor, "Coffee.", "coffee.md")
    assert (await crew.owner.put(AGENT, json={"file_ids": [mine]})).status_code == 200
    assert (await crew.editor.put(AGENT, json={"file_ids": [theirs, mine]})).status_code == 200
    for file_ids, param in (([mine, theirs, mine], "file_ids[2]"), ([mine, "file-none"], "file_ids[1]")):
        refused = await crew.owner.put(AGENT, json={"file_ids": file_ids})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    other = await crew.owner.put("/v1/agents/other", json={"file_ids": [mine, theirs]})
    assert (other.status_code, other.json()["error"]["param"]) == (400, "file_ids[1]")
    assert (await crew.owner.get(AGENT)).json()["file_ids"] == [theirs, mine]
    too_many = await crew.owner.put(AGENT, json={"file_ids": [f"file-{number}" for number in range(101)]})
    assert (too_many.status_code, too_many.json()["error"]["param"]) == (400, "file_ids")


async def test_what_an_agent_no_longer_has_leaves_its_file_index(crew: Members) -> None:
    kept, left = await uploaded(crew.owner, "Tea."), await uploaded(crew.owner, "Coffee.", "coffee.md")
    await crew.owner.put(AGENT, json={"file_ids": [kept, left]})
    for _ in range(2):
        await crew.house.reading.step()
    (file_index_id,) = [base_id for base_id in crew.house.knowledge.base_ids if base_id.startswith("shelf_")]
    found = await crew.house.knowledge.all_documents([file_index_id])
    assert {document.file_id for document in found} == {kept, left}
    await crew.owner.put(AGENT, json={"file_ids": [kept]})
    assert [document.file_id for document in await crew.house.knowledge.all_documents([file_index_id])] == [kept]
    await crew.owner.delete(AGENT)
    assert file_index_id not in crew.house.knowledge.base_ids


async def test_who_may_do_what(crew: Members) -> None:
    assert (await crew.editor.put(AGENT, json={"knowledge_base_ids": [crew.base_id]})).status_code == 200
    assert (await crew.reader.get(AGENT)).json()["role"] == "reader"
    assert (await crew.reader.put(AGENT, json={})).status_code == 403
    assert (await crew.editor.delete(AGENT)).status_code == 403
    assert (await crew.editor.put(f"{AGENT}/members/sam", json={"role": "reader"})).status_code == 403
    listed = (await crew.reader.get(f"{AGENT}/members")).json()
    assert [(each["user_id"], each["role"]) for each in listed["data"]] == [
        ("ed", "editor"),
        ("olga", "owner"),
        ("rae", "reader"),
    ]
    assert (await crew.owner.delete(AGENT)).json() == {"id": "helper", "object": "agent.deleted", "deleted": True}
    assert (await crew.owner.get(AGENT)).status_code == 404


async def test_for_others_a_private_agent_does_not_exist(crew: Members) -> None:
    for client in (crew.stranger, crew.foreigner):
        for method, path in (
            ("GET", AGENT),
            ("DELETE", AGENT),
            ("GET", f"{AGENT}/members"),
            ("GET", f"{AGENT}/members/olga"),
            ("DELETE", f"{AGENT}/members/olga"),
        ):
            assert (await client.request(method, path)).status_code == 404
        put = await client.put(f"{AGENT}/members/sam", json={"role": "owner"})
        assert put.status_code == 404
        assert (await client.get("/v1/agents")).json()["data"] == []
        assert "helper" not in (await client.get("/v1/models")).text
        assert (await client.get("/v1/models/helper")).status_code == 404
    taken = await crew.stranger.put(AGENT, json={})
    assert error_of(taken) == (404, "name")
    assert "take another one" in taken.json()["error"]["message"]
    assert (await crew.foreigner.put(AGENT, json={})).status_code == 201
    assert (await crew.owner.get(AGENT)).json()["instructions"] == "Be brief."


async def test_everyone_of_the_tenant_uses_an_agent_that_is_visible(crew: Members) -> None:
    visible = {"visibility": "tenant", "knowledge_base_ids": [crew.base_id]}
    assert (await crew.owner.put(AGENT, json=visible)).status_code == 200
    shown = (await crew.stranger.get(AGENT)).json()
    assert (shown["role"], shown["knowledge_base_ids"]) == ("reader", [])
    assert (await crew.restricted.get(AGENT)).json()["knowledge_base_ids"] == [crew.base_id]
    assert (await crew.stranger.put(AGENT, json={})).status_code == 403
    assert (await crew.stranger.delete(AGENT)).status_code == 403
    assert (await crew.stranger.get(f"{AGENT}/members")).status_code == 403
    assert (await crew.foreigner.get(AGENT)).status_code == 404


async def test_models_list_the_agents_that_the_caller_may_use(crew: Members) -> None:
    data = (await crew.reader.get("/v1/models")).json()["data"]
    assert [(each["id"], each["owned_by"]) for each in data] == [
        ("demo-model", "ballast"),
        ("vendor/large", "ballast"),
        ("helper", "agent"),
    ]
    assert (await crew.reader.get("/v1/models/helper")).json() == data[-1]


async def test_a_model_wins_over_an_agent_of_its_name(crew: Members) -> None:
    assert error_of(await crew.owner.put("/v1/agents/demo-model", json={})) == (400, "name")
    crew.house.chat_shell.model_names.append("helper")
    crew.house.clock.advance(10)
    data = (await crew.owner.get("/v1/models")).json()["data"]
    assert [each["owned_by"] for each in data if each["id"] == "helper"] == ["ballast"]
    assert (await crew.owner.put(AGENT, json={"instructions": "Still mine."})).status_code == 200


async def test_an_agent_keeps_an_owner(crew: Members) -> None:
    assert (await crew.owner.put(f"{AGENT}/members/olga", json={"role": "reader"})).status_code == 409
    assert (await crew.owner.delete(f"{AGENT}/members/olga")).status_code == 409
    assert (await crew.owner.delete(f"{AGENT}/members/sam")).status_code == 404
    assert (await crew.owner.delete(f"{AGENT}/members/rae")).status_code == 200
    assert (await crew.reader.get(AGENT)).status_code == 404


async def test_an_editor_keeps_bases_that_are_not_theirs_and_adds_none(crew: Members) -> None:
    assert (await crew.owner.put(f"{AGENT}/members/sam", json={"role": "editor"})).status_code == 201
    kept = await crew.stranger.put(AGENT, json={"knowledge_base_ids": [crew.base_id], "instructions": "New."})
    assert (kept.status_code, kept.json()["knowledge_base_ids"]) == (200, [crew.base_id])
    assert (await crew.stranger.put(AGENT, json={})).status_code == 200
    again = await crew.stranger.put(AGENT, json={"knowledge_base_ids": [crew.base_id]})
    assert error_of(again) == (404, "knowledge_base_ids[0]")
    search = {"type": "file_search", "vector_store_ids": [crew.base_id]}
    assert error_of(await crew.stranger.put(AGENT, json={"tools": [search]})) == (404, "tools[0].vector_store_ids[0]")


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"model": "gpt-nope"}, "model"),
        ({"model": 5}, "model"),
        ({"knowledge_mode": "loose"}, "knowledge_mode"),
        ({"placement": "left"}, "placement"),
        ({"visibility": "world"}, "visibility"),
        ({"parameters": {"temperature": 3}}, "parameters.temperature"),
        ({"parameters": {"model": "x"}}, "parameters.model"),
        ({"tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]}, "tools[1].name"),
        ({"tools": [{"type": "function", "name": "a"}, {"type": "magic"}]}, "tools[1].type"),
        ({"reminder": "x" * 4_001}, "reminder"),
        ({"file_ids": [1]}, "file_ids[0]"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_wrong_fields_are_named(members: Members, given: dict[str, Any], param: str) -> None:
    answer = await members.owner.put(AGENT, json=given)
    assert error_of(answer) == (400, param)
    assert (await members.owner.get(AGENT)).status_code == 404


@pytest.mark.parametrize("name", ["-a", "a b", "a" * 129, "ü"])
async def test_wrong_names_are_refused(members: Members, name: str) -> None:
    assert error_of(await members.owner.put(f"/v1/agents/{name}", json={})) == (400, "name")
    assert (await members.owner.get(f"/v1/agents/{name}")).status_code == 404


async def test_agents_are_listed_page_by_page(members: Members) -> None:
    for name in ("a", "b", "c"):
        assert (await members.owner.put(f"/v1/agents/{name}", json={})).status_code == 201
        members.house.clock.advance(1)
    first = (await members.owner.get("/v1/agents", params={"limit": 2})).json()
    assert ([each["name"] for each in first["data"]], first["has_more"], first["last_id"]) == (["c", "b"], True, "b")
    rest = (await members.owner.get("/v1/agents", params={"after": "b"})).json()
    assert ([each["name"] for each in rest["data"]], rest["has_more"]) == (["a"], False)
    assert error_of(await members.owner.get("/v1/agents", params={"after": "x"})) == (404, "after")
