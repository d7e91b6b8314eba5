"""The same bytes under several names are found once, with all names, on both databases."""

from typing import Any

import httpx2

from tests.e2e.pair import Pair
from tests.e2e.turns import bare_client, new_base, turn
from tests.fakes.mcp_client import call, mcp_client
from tests.fakes.mcp_client import said as said_in
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall

CONTRACT = b"The pump of hall seven is sealed until the surveyor has signed."


async def put_copies(client: httpx2.AsyncClient, base_id: str, *names: str) -> None:
    for name in names:
        stored = await client.put(f"/v1/knowledge_bases/{base_id}/documents/{name}", content=CONTRACT)
        assert stored.status_code == 201, stored.text


async def find(client: httpx2.AsyncClient, base_id: str) -> list[tuple[str, list[str]]]:
    answer = await client.post(f"/v1/knowledge_bases/{base_id}/search", json={"query": "sealed pump"})
    assert answer.status_code == 200, answer.text
    hits: list[dict[str, Any]] = answer.json()["data"]
    return [(hit["document"], hit.get("other_names", [])) for hit in hits]


async def test_copies_are_found_once_and_each_lives_by_itself(pair: Pair) -> None:
    async with bare_client(pair, "cora") as cora, bare_client(pair, "rolf") as rolf:
        base, other = await new_base(cora, "Halls"), await new_base(cora, "Else")
        await put_copies(cora, base, "b/contract.txt", "a.txt")
        await put_copies(cora, other, "elsewhere.txt")
        assert await find(cora, base) == [("a.txt", ["b/contract.txt"])]
        documents = await cora.get(f"/v1/knowledge_bases/{base}/documents")
        assert [each["name"] for each in documents.json()["data"]] == ["a.txt", "b/contract.txt"]
        member = await cora.put(f"/v1/knowledge_bases/{other}/members/rolf", json={"role": "reader"})
        assert member.status_code == 201
        assert await find(rolf, other) == [("elsewhere.txt", [])]
        refused = await rolf.post(f"/v1/knowledge_bases/{base}/search", json={"query": "sealed pump"})
        assert refused.status_code == 404
        assert (await cora.delete(f"/v1/knowledge_bases/{base}/documents/a.txt")).status_code == 200
        assert await find(cora, base) == [("b/contract.txt", [])]
        changed = await cora.put(f"/v1/knowledge_bases/{base}/documents/b/contract.txt", content=b"The pump is sealed.")
        assert changed.status_code == 200
        await put_copies(cora, base, "a.txt")
        assert sorted(await find(cora, base)) == [("a.txt", []), ("b/contract.txt", [])]


async def test_an_answer_cites_a_copy_with_all_its_names(pair: Pair, model: FakeModelControl) -> None:
    searches = Reply(tool_calls=(ScriptedCall(name="knowledge_base_search", arguments='{"query": "sealed pump"}'),))
    answers = Reply(text=("It is sealed [1].",))
    await model.script(searches, answers, answers, searches, answers)
    async with bare_client(pair, "cora") as cora:
        base = await new_base(cora, "Names")
        await put_copies(cora, base, "b/contract [1].txt", "a.txt")
        tools = [{"type": "file_search", "vector_store_ids": [base]}]
        shown = {"tools": tools, "include": ["file_search_call.results"]}
        first = await turn(cora, "Is the pump sealed?", **shown)
        later = await turn(cora, "And since when?", previous_response_id=first["id"])
        found, said = first["output"]
        notes = [body["content"][0]["annotations"][0] for body in (said, later["output"][0])]
        for one in (*found["results"], *notes):
            assert (one["filename"], one["other_names"]) == ("a.txt", ["b/contract [1].txt"])
        asked = {"model": "fake-model", "messages": [{"role": "user", "content": "Sealed?"}], "tools": tools}
        answer = await cora.post("/v1/chat/completions", json=asked)
        (note,) = answer.json()["choices"][0]["message"]["annotations"]
        assert note["url_citation"]["other_names"] == ["b/contract [1].txt"]
        async with mcp_client(cora) as client:
            (hit,) = said_in(await call(client, "search_knowledge", query="pump", knowledge_base_ids=[base]))["results"]
            assert (hit["document"], hit["other_names"]) == ("a.txt", ["b/contract [1].txt"])
    (told,) = [each for each in (await model.requests())[1].json_body["messages"] if each["role"] == "tool"]
    assert '"other_names": ["b/contract [1].txt"]' in told["content"]


async def test_a_restricted_member_learns_no_name_of_a_copy(pair: Pair) -> None:
    async with bare_client(pair, "cora") as cora, bare_client(pair, "rex") as rex:
        base = await new_base(cora, "Vault")
        await put_copies(cora, base, "merger-with-nordwind.txt", "public.txt")
        role = {"role": "restricted_analyst"}
        assert (await cora.put(f"/v1/knowledge_bases/{base}/members/rex", json=role)).status_code == 201
        for path in ("documents", "chunks?document=public.txt", "documents/public.txt"):
            refused = await rex.get(f"/v1/knowledge_bases/{base}/{path}")
            assert refused.status_code == 403
            assert "nordwind" not in refused.text
        refused = await rex.post(f"/v1/knowledge_bases/{base}/search", json={"query": "pump"})
        assert (refused.status_code, "nordwind" in refused.text) == (403, False)
