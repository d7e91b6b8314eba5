"""Administrators delete and export what is a person's, on both databases."""

import base64
from typing import Any

import httpx2
import orjson

from tests.e2e.client.knowledge_bases import file_search, new_base, searches, set_role
from tests.e2e.pair import ADMIN_KEY, Pair
from tests.e2e.turns import asked, bare_client, new_conversation, put_agent, turn, upload
from tests.fakes.model_server import FakeModelControl, Fault, Reply

Line = dict[str, Any]


def delete(pair: Pair, user_id: str, **query: str) -> httpx2.Response:
    with pair.http(ADMIN_KEY) as admin:
        return admin.delete(f"/v1/users/{user_id}", params=query)


def export(pair: Pair, user_id: str, **query: str) -> list[Line]:
    with pair.http(ADMIN_KEY) as admin:
        answer = admin.get(f"/v1/users/{user_id}/export", params=query)
    assert answer.status_code == 200, answer.text
    return [orjson.loads(line) for line in answer.text.splitlines()]


def check_kinds(lines: list[Line]) -> None:
    """An export shows all kinds of things that a person may have, and is whole."""
    assert [lines[0]["type"], lines[-1]["type"]] == ["user", "end"]
    found = {line["type"] for line in lines}
    assert found >= {"conversation", "item", "response", "file", "file_content", "knowledge_membership"}
    assert found >= {"agent_membership", "conversation_membership", "api_key", "agent", "knowledge_base"}
    (document,) = [line for line in lines if line["type"] == "document_content"]
    assert base64.b64decode(document["base64"]) == b"Glaciers."


async def put_glaciers(client: httpx2.AsyncClient, base_id: str) -> None:
    headers = {"Content-Type": "text/markdown"}
    put = await client.put(f"/v1/knowledge_bases/{base_id}/documents/ice.md", content=b"Glaciers.", headers=headers)
    assert put.status_code in (200, 201), put.text


async def test_a_person_leaves_with_all_that_is_theirs(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Fine.",)), Reply(text=("Mine.",)))
    async with bare_client(pair, "pia") as pia, bare_client(pair, "ann") as ann:
        conversation, others = await new_conversation(pia), await new_conversation(ann)
        role = await ann.put(f"/v1/conversations/{others}/members/pia", json={"role": "reader"})
        assert role.status_code in (200, 201), role.text
        file_id = await upload(pia, "rivers.md", "The Rhine.")
        said = await turn(pia, asked("Where?", file_id), conversation=conversation)
        kept = await turn(ann, "Where?", conversation=others)
        shared = new_base(pair, "shared-with-pia", {"a.md": "Alps."}, pia="editor")
        created = await pia.post("/v1/knowledge_bases", json={"name": "pia's", "summary": "Hers alone."})
        await put_glaciers(pia, created.json()["id"])
        await put_agent(pia, "pia-agent", instructions="Be brief.")

        refused = delete(pair, "pia")
        assert (refused.status_code, refused.json()["error"]["param"]) == (409, "owned")
        assert created.json()["id"] in refused.json()["error"]["message"]
        assert "pia-agent" in refused.json()["error"]["message"]
        assert (await pia.get(f"/v1/responses/{said['id']}")).status_code == 200

        lines = export(pair, "pia")
        check_kinds(lines)
        assert [line["conversation_id"] for line in lines if line["type"] == "item"] == [conversation] * 2
        assert kept["id"] not in orjson.dumps(lines).decode()

        answer = delete(pair, "pia", owned="delete")
        assert answer.status_code == 200, answer.text
        assert answer.json()["counts"] == {
            "api_keys": 1,
            "waiting_turns": 0,
            "stopped_turns": 0,
            "conversations": 1,
            "responses": 1,
            "agents": 1,
            "knowledge_bases": 1,
            "conversation_memberships": 1,
            "knowledge_memberships": 1,
            "agent_memberships": 0,
            "group_memberships": 0,
            "released_results": 0,
            "restricted_usage": 0,
            "files": 1,
            "restricted_searches": 0,
        }
        assert (await pia.get("/v1/models")).status_code == 401
        assert [line["type"] for line in export(pair, "pia")] == ["user", "end"]
        assert set(delete(pair, "pia").json()["counts"].values()) == {0}
        assert (await ann.get(f"/v1/responses/{kept['id']}")).status_code == 200
        members = (await ann.get(f"/v1/knowledge_bases/{shared.id}/members")).text
        assert "pia" not in members


async def test_turns_that_run_are_stopped_first(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("on and ",), fault=Fault.ENDLESS))
    async with bare_client(pair, "ron") as ron:
        conversation = await new_conversation(ron)
        await turn(ron, "Go on", conversation=conversation, background=True)
        await model.wait_requests(1)
        answer = delete(pair, "ron")
        assert answer.status_code == 200, answer.text
        counts = answer.json()["counts"]
        assert (counts["stopped_turns"], counts["conversations"], counts["responses"]) == (1, 1, 1)
        assert await model.wait_closed()


async def test_an_export_withholds_what_the_person_may_not_read_any_more(pair: Pair, model: FakeModelControl) -> None:
    base = new_base(pair, "lost-to-lea", {"a.md": "The zinfandel lies in the deepest cellar."}, lea="reader")
    await model.script(searches("zinfandel"), Reply(text=("It lies in the deepest cellar.",)))
    async with bare_client(pair, "lea") as lea:
        await turn(lea, "Where is it?", tools=[file_search(base)], conversation=await new_conversation(lea))
    assert "deepest cellar" in orjson.dumps(export(pair, "lea")).decode()
    set_role(pair, base.id, "lea", "restricted_analyst")
    text = orjson.dumps(export(pair, "lea")).decode()
    assert "Where is it?" in text
    assert "deepest cellar" not in text


async def test_another_tenant_is_another_person_and_only_administrators_may(
    pair: Pair, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("Fine.",)))
    async with bare_client(pair, "tom") as tom:
        said = await turn(tom, "Hello")
        assert (await tom.delete("/v1/users/tom")).status_code == 403
        assert (await tom.get("/v1/users/tom/export")).status_code == 403
        assert set(delete(pair, "tom", tenant="elsewhere").json()["counts"].values()) == {0}
        assert [line["type"] for line in export(pair, "tom", tenant="elsewhere")] == ["user", "end"]
        assert (await tom.get(f"/v1/responses/{said['id']}")).status_code == 200
        wrong = delete(pair, "tom", owned="keep")
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "owned")
