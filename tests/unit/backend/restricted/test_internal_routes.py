"""Retrieval by ticket: the API that chat_shell reads knowledge by."""

import asyncio
from datetime import timedelta

import pytest

from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from tests.fakes.http_api import SECRET, uploaded
from tests.unit.backend.conftest import BASES, MANUAL, Members
from tests.unit.backend.restricted.internal_api import INTERNAL, ask, ticket_for


async def test_a_search_finds_chunks_of_the_bases_in_the_ticket(members: Members) -> None:
    put = (await members.put("a.md", MANUAL)).json()
    answer = await ask(members, "search", ticket_for(members), query="hotels", limit=1)
    found = answer.json()
    assert (answer.status_code, found["access_mode"], found["whole"]) == (200, "full", False)
    (hit,) = found["data"]
    assert {key: hit[key] for key in hit if key != "score"} == {
        "knowledge_base_id": members.base_id,
        "file_id": put["id"],
        "filename": "a.md",
        "heading_path": ["Travel", "Hotels"],
        "text": "Hotels cost at most ninety.",
        "attributes": {},
    }


async def test_a_small_base_comes_whole_in_document_order(members: Members) -> None:
    await members.put("b.txt", "Nothing of the kind.", "text/plain")
    await members.put("a.md", MANUAL)
    whole = (await ask(members, "search", ticket_for(members), query="x", whole_below_tokens=1000)).json()
    assert whole["whole"] is True
    assert [hit["filename"] for hit in whole["data"]] == ["a.md", "a.md", "b.txt"]
    found = (await ask(members, "search", ticket_for(members), query="nothing", whole_below_tokens=10)).json()
    assert (found["whole"], [hit["filename"] for hit in found["data"]]) == (False, ["b.txt"])


async def test_a_ticket_may_limit_the_results(members: Members) -> None:
    await members.put("a.md", MANUAL)
    await members.put("b.txt", "Hotels again.", "text/plain")
    for limit, brought in ((1, 1), (9, 2)):
        ticket = ticket_for(members, search=SearchOptions(max_results=limit))
        found = (await ask(members, "search", ticket, query="hotels", whole_below_tokens=1000)).json()
        assert (found["whole"], len(found["data"])) == (False, brought)


async def test_a_ticket_may_ask_for_more_results_than_are_usual(members: Members) -> None:
    for number in range(12):
        await members.put(f"{number}.txt", f"Hotel {number}.", "text/plain")
    for search, brought in ((SearchOptions(), 10), (SearchOptions(max_results=11), 11)):
        found = (await ask(members, "search", ticket_for(members, search=search), query="hotel")).json()
        assert len(found["data"]) == brought


async def test_a_ticket_may_ask_for_a_score(members: Members) -> None:
    await members.put("a.txt", "Hotels, hotels, hotels.", "text/plain")
    await members.put("b.txt", "One of many hotels, far away and dear.", "text/plain")
    usual = (await ask(members, "search", ticket_for(members), query="hotels")).json()["data"]
    best, second = (hit["score"] for hit in usual)
    assert 0 < second < best < 1
    for min_score, brought in ((0.0, 2), (second, 2), (best, 1), (1.0, 0)):
        ticket = ticket_for(members, search=SearchOptions(min_score=min_score))
        found = (await ask(members, "search", ticket, query="hotels")).json()["data"]
        assert found == usual[:brought]
    ticket = ticket_for(members, search=SearchOptions(min_score=best))
    found = (await ask(members, "search", ticket, query="hotels", whole_below_tokens=1000)).json()
    assert (found["whole"], len(found["data"])) == (False, 1)


async def test_a_restricted_member_gets_no_text_in_any_way(members: Members) -> None:
    put = (await members.put("a.md", MANUAL)).json()
    ticket = ticket_for(members, "ana")
    for whole_below_tokens in (0, 1000):
        search = await ask(members, "search", ticket, query="hotels", whole_below_tokens=whole_below_tokens)
        assert search.json() == {"access_mode": "restricted", "whole": False, "data": []}
    assert (await ask(members, "documents", ticket)).status_code == 403
    assert (await ask(members, "read", ticket, file_id=put["id"])).status_code == 403


async def test_one_restricted_base_restricts_what_names_it(members: Members) -> None:
    await members.put("a.md", MANUAL)
    own = (await members.restricted.post(BASES, json={"name": "Own"})).json()["id"]
    document = await members.restricted.put(f"{BASES}/{own}/documents/o.txt", content=b"Hotels of my own.")
    ticket = ticket_for(members, "ana", own)
    both = (await ask(members, "search", ticket, query="hotels")).json()
    assert (both["access_mode"], both["data"]) == ("restricted", [])
    alone = (await ask(members, "search", ticket, query="hotels", knowledge_base_ids=[own])).json()
    assert (alone["access_mode"], [hit["filename"] for hit in alone["data"]]) == ("full", ["o.txt"])
    assert (await ask(members, "documents", ticket, knowledge_base_ids=[own])).status_code == 403
    assert (await ask(members, "read", ticket, file_id=document.json()["id"])).status_code == 403


async def test_the_role_of_today_decides_and_not_the_ticket(members: Members) -> None:
    await members.put("a.md", MANUAL)
    ticket = ticket_for(members)
    await members.owner.put(f"{members.base}/members/rae", json={"role": "restricted_analyst"})
    assert (await ask(members, "search", ticket, query="hotels")).json()["data"] == []
    await members.owner.delete(f"{members.base}/members/rae")
    for path, body in (("search", {"query": "hotels"}), ("documents", {})):
        assert (await ask(members, path, ticket, **body)).status_code == 403


async def test_documents_are_listed_by_base_and_name(members: Members) -> None:
    await members.put("b.txt", "text", "text/plain")
    put = (await members.put("a.md", MANUAL)).json()
    listed = (await ask(members, "documents", ticket_for(members))).json()["data"]
    assert [each["filename"] for each in listed] == ["a.md", "b.txt"]
    assert listed[0] == {
        "knowledge_base_id": members.base_id,
        "file_id": put["id"],
        "filename": "a.md",
        "size_bytes": len(MANUAL.encode()),
        "chunk_count": 2,
    }


async def test_a_document_is_read_page_by_page(members: Members) -> None:
    put = (await members.put("a.md", MANUAL)).json()
    text, offset = "", 0
    while offset is not None:
        page = (await ask(members, "read", ticket_for(members), file_id=put["id"], offset=offset, limit=20)).json()
        assert (page["offset"], page["total_characters"], page["filename"]) == (offset, len(MANUAL), "a.md")
        text, offset = text + page["text"], page["next_offset"]
    assert text == MANUAL
    beyond = (await ask(members, "read", ticket_for(members), file_id=put["id"], offset=10_000)).json()
    assert (beyond["text"], beyond["next_offset"]) == ("", None)


async def test_other_formats_are_read_with_their_headings(members: Members) -> None:
    put = (await members.put("a.html", "<h1>A</h1><p>one<h2>B</h2><p>two<h1>C</h1><p>three", "text/html")).json()
    page = (await ask(members, "read", ticket_for(members), file_id=put["id"])).json()
    assert page["text"] == "# A\n\none\n\n## B\n\ntwo\n\n# C\n\nthree"


@pytest.mark.parametrize("path", ["search", "documents", "read"])
async def test_a_forged_or_expired_ticket_is_a_401(members: Members, path: str) -> None:
    body = {"search": {"query": "x"}, "documents": {}, "read": {"file_id": "doc_x"}}[path]
    expired = ticket_for(members, seconds=-1)
    for ticket in ("", "x.y", expired, ticket_for(members, secret="other"), ticket_for(members)[:-3]):
        answer = await ask(members, path, ticket, **body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (401, "ticket")
    assert [record.reason for record in members.house.ledger.records] == ["bad_ticket"] * 5


@pytest.mark.parametrize("path", ["search", "documents"])
async def test_a_base_that_is_not_in_the_ticket_is_a_403(members: Members, path: str) -> None:
    other = (await members.owner.post(BASES, json={"name": "Other"})).json()["id"]
    body = {"query": "x"} if path == "search" else {}
    for base_ids in ([other], [members.base_id, other], ["kb_unknown"]):
        answer = await ask(members, path, ticket_for(members, "olga"), knowledge_base_ids=base_ids, **body)
        assert answer.status_code == 403


async def test_a_document_of_another_base_is_not_there(members: Members) -> None:
    other = (await members.owner.post(BASES, json={"name": "Other"})).json()["id"]
    document = (await members.owner.put(f"{BASES}/{other}/documents/o.txt", content=b"secret")).json()
    for file_id in (document["id"], "doc_unknown"):
        answer = await ask(members, "read", ticket_for(members, "olga"), file_id=file_id)
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "file_id")


async def test_only_chat_shell_is_let_in(members: Members) -> None:
    body = {"ticket": ticket_for(members), "query": "hotels"}
    for client in (members.owner, members.reader):
        assert (await client.post(f"{INTERNAL}/search", json=body)).status_code == 401
    members.chat_shell.headers.pop("Authorization")
    assert (await members.chat_shell.post(f"{INTERNAL}/search", json=body)).status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("search", {}, "query"),
        ("search", {"query": "x", "limit": 0}, "limit"),
        ("search", {"query": "x", "whole_below_tokens": -1}, "whole_below_tokens"),
        ("search", {"query": "x", "access_mode": "full"}, "access_mode"),
        ("documents", {"knowledge_base_ids": "kb"}, "knowledge_base_ids"),
        ("read", {"file_id": "d", "offset": -1}, "offset"),
    ],
)
async def test_a_wrong_field_is_named(members: Members, path: str, body: dict[str, object], param: str) -> None:
    answer = await ask(members, path, ticket_for(members), **body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def ticket_of_files(members: Members, user_id: str, *file_ids: str, base_ids: tuple[str, ...] = ()) -> str:
    ticket = Ticket(
        user_id=user_id,
        tenant="default",
        conversation_id="conv_1",
        turn_id="resp_1",
        base_ids=base_ids,
        search=SearchOptions(),
        file_ids=file_ids,
        expires_at=members.house.clock.now() + timedelta(seconds=60),
    )
    return sign_ticket(ticket, SECRET)


async def test_an_attached_file_is_read_in_pages_by_its_owners_ticket_alone(members: Members) -> None:
    file_id = await uploaded(members.reader, "# Tea\n\nTea is green.")
    reading = asyncio.create_task(members.house.reading.step())
    mine = await ticket_of_files(members, "rae", file_id)
    while (answer := await ask(members, "read_file", mine, file_id=file_id, offset=2, limit=3)).status_code == 503:
        continue  # each of them waits some seconds for the reader, which a busy machine may need
    page = answer.json()
    await reading
    assert (page["text"], page["next_offset"], page["filename"], page["file_id"]) == ("Tea", 5, "tea.md", file_id)
    assert (await ask(members, "read_file", mine, file_id="file-other")).status_code == 404
    others = await ticket_of_files(members, "olga", file_id)
    assert (await ask(members, "read_file", others, file_id=file_id)).status_code == 404
    unnamed = await ticket_of_files(members, "rae")
    assert (await ask(members, "read_file", unnamed, file_id=file_id)).status_code == 404
    assert (await ask(members, "read_file", "forged", file_id=file_id)).status_code == 401
    await members.reader.delete(f"/v1/files/{file_id}")
    assert (await ask(members, "read_file", mine, file_id=file_id)).status_code == 404


async def test_the_files_of_an_agent_are_searched_as_long_as_the_user_may_use_it(members: Members) -> None:
    file_id = await uploaded(members.owner, "# Tea\n\nTea is green.")
    await members.owner.put("/v1/agents/tea", json={"file_ids": [file_id]})
    await members.owner.put("/v1/agents/tea/members/rae", json={"role": "reader"})
    await members.house.reading.step()
    (file_index_id,) = [base_id for base_id in members.house.knowledge.base_ids if base_id.startswith("shelf_")]
    ticket = await ticket_of_files(members, "rae", base_ids=(file_index_id,))
    found = (await ask(members, "search", ticket, query="tea")).json()
    assert [hit["file_id"] for hit in found["data"]] == [file_id]
    assert (await ask(members, "read", ticket, file_id=file_id)).json()["text"].endswith("Tea is green.")
    strange = await ticket_of_files(members, "sam", base_ids=(file_index_id,))
    await members.owner.delete("/v1/agents/tea/members/rae")
    for lost in (ticket, strange):
        assert (await ask(members, "search", lost, query="tea")).status_code == 403
        assert (await ask(members, "documents", lost)).status_code == 403
        assert (await ask(members, "read", lost, file_id=file_id)).status_code == 403
    assert (await members.reader.get(f"/v1/knowledge_bases/{file_index_id}")).status_code == 404
    assert (await members.owner.get(f"/v1/vector_stores/{file_index_id}")).status_code == 404
