"""The tools of `/mcp`, called by the official client."""

from datetime import timedelta

import pytest
from mcp.shared.exceptions import MCPError
from structlog.testing import capture_logs

from backend.identity.domain import KeyRole
from shared.errors import ChatShellUnavailable
from shared.models.execution import AccessMode
from shared.models.single_tools import SingleToolResult
from shared.models.values import JsonObject, JsonValue
from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE, RESTRICTED_PASSED_OVER
from tests.fakes.http_api import client_of
from tests.fakes.mcp_client import Mode, call, mcp_client, refusal_in, said, texts_of
from tests.unit.backend.conftest import BASES, MANUAL, Members

both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
SUMMARY: JsonObject = {
    "decision": "answer",
    "reason": "advice",
    "summary": "Plan trips early.",
    "observations": ["Costs may grow."],
    "risks": [],
    "recommended_actions": ["Ask before you travel."],
    "confidence": "medium",
}


def released(**changes: JsonValue) -> SingleToolResult:
    return SingleToolResult(text="as a model reads it", failed=False, structured={**SUMMARY, **changes})


@both_eras
async def test_a_reader_finds_passages_with_what_is_needed_to_cite_them(members: Members, mode: Mode):
    document = (await members.put("manual.md", MANUAL)).json()
    async with mcp_client(members.reader, mode) as client:
        found = await call(client, "search_knowledge", query="how much may hotels cost", max_results=1)
    (passage,) = said(found)["results"]
    assert said(found)["restricted"] is None
    assert passage["document"] == "manual.md"
    assert passage["file_id"] == document["id"]
    assert passage["knowledge_base_id"] == members.base_id
    assert passage["heading_path"] == ["Travel", "Hotels"]
    assert passage["text"] == "Hotels cost at most ninety."
    assert passage["chunk"].startswith("chunk_")
    assert 0 < passage["score"] <= 1
    assert passage["uri"] == f"ballast://knowledge_bases/{members.base_id}/documents/manual.md"
    (text,) = texts_of(found)
    assert "Hotels cost at most ninety." in text
    assert not members.house.chat_shell.tool_calls


@both_eras
async def test_documents_are_listed_and_read_in_pages(members: Members, mode: Mode):
    for name in ("a.md", "b.md", "c.md"):
        await members.put(name, f"# {name}\n\nOne two three four 五六七。")
    base = members.base_id
    async with mcp_client(members.reader, mode) as client:
        first = said(await call(client, "list_documents", knowledge_base_id=base, limit=2))
        rest = said(await call(client, "list_documents", knowledge_base_id=base, limit=2, after=first["next_after"]))
        named = [one["name"] for page in (first, rest) for one in page["documents"]]
        page = said(await call(client, "read_document", knowledge_base_id=base, document="b.md", max_characters=10))
        by_id = first["documents"][1]["id"]
        end = said(await call(client, "read_document", knowledge_base_id=base, document=by_id, offset=10))
    assert named == ["a.md", "b.md", "c.md"]
    assert rest["next_after"] == ""
    assert page["next_offset"] == 10
    assert end["next_offset"] is None
    assert page["text"] + end["text"] == "# b.md\n\nOne two three four 五六七。"
    assert page["total_characters"] == len(page["text"] + end["text"])


async def test_bases_are_listed_by_role_and_in_pages(members: Members):
    members.house.clock.advance(1)
    second = (await members.owner.post(BASES, json={"name": "Second"})).json()["id"]
    async with mcp_client(members.owner) as client:
        first = said(await call(client, "list_knowledge_bases", limit=1))
        rest = said(await call(client, "list_knowledge_bases", limit=1, after=first["next_after"]))
    assert [one["id"] for page in (first, rest) for one in page["knowledge_bases"]] == [members.base_id, second]
    assert first["knowledge_bases"][0]["summary"] == "All about trips"
    async with mcp_client(members.restricted) as client:
        (base,) = said(await call(client, "list_knowledge_bases"))["knowledge_bases"]
    assert base == (await members.restricted.get(members.base)).json()
    assert base["role"] == "restricted_analyst"
    assert "summary" not in base


@both_eras
async def test_a_restricted_member_gets_the_released_summary_alone(members: Members, mode: Mode):
    await members.put("manual.md", MANUAL)
    chat_shell = members.house.chat_shell
    chat_shell.tool_results = [released()]
    async with mcp_client(members.restricted, mode) as client:
        found = await call(
            client, "search_knowledge", query="What should we plan?", knowledge_base_ids=[members.base_id]
        )
    assert said(found) == {
        "results": [],
        "restricted": {"knowledge_base_ids": [members.base_id], "summary": SUMMARY, "note": RELEASED_NOTE},
    }
    (text,) = texts_of(found)
    assert text.endswith(RELEASED_NOTE)
    (asked,) = chat_shell.tool_calls
    knowledge = asked.turn.knowledge
    assert (asked.tool, asked.arguments) == ("knowledge_base_search", {"query": "What should we plan?"})
    assert [(base.id, base.access_mode) for base in knowledge.bases] == [(members.base_id, AccessMode.RESTRICTED)]
    assert asked.turn.prompt == knowledge.user_words == "What should we plan?"
    assert asked.turn.turn_id.startswith("lookup_")


async def test_the_ticket_opens_the_base_to_chat_shell_for_a_sealed_search(members: Members):
    await members.put("manual.md", MANUAL)
    async with mcp_client(members.restricted) as client:
        await call(client, "search_knowledge", query="hotels cost")
    ticket = members.house.chat_shell.tool_calls[0].turn.knowledge.ticket
    versions = {"policy_version": "1", "gate_version": "1", "prompt_version": "1", "model": "m"}
    body = {"ticket": ticket, "query": "hotels cost", "sealed": versions}
    sealed = await members.chat_shell.post("/internal/v1/knowledge/search", json=body)
    assert sealed.json()["sealed"]["chunks"]
    plain = await members.chat_shell.post("/internal/v1/knowledge/search", json={"ticket": ticket, "query": "hotels"})
    assert plain.json()["data"] == []


async def test_searches_of_a_day_are_of_one_budget_session_whatever_the_connection_or_key(members: Members):
    service = await members.house.key("any", role=KeyRole.SERVICE)
    async with client_of(members.app, service, **{"X-Ballast-User": "ana"}) as acting:
        for http in (members.restricted, acting):
            async with mcp_client(http) as client:
                await call(client, "search_knowledge", query="one")
    await members.owner.put(f"{members.base}/members/eve", json={"role": "restricted_analyst"})
    async with client_of(members.app, await members.house.key("eve")) as eve, mcp_client(eve) as client:
        await call(client, "search_knowledge", query="one")
    members.house.clock.advance(timedelta(days=1).total_seconds())
    async with mcp_client(members.restricted) as client:
        await call(client, "search_knowledge", query="one")
    sessions = [asked.turn.conversation_id for asked in members.house.chat_shell.tool_calls]
    assert sessions[0] == sessions[1]
    assert len(set(sessions)) == 3
    assert len({asked.turn.turn_id for asked in members.house.chat_shell.tool_calls}) == 4


async def test_nothing_to_say_reads_the_same_whatever_the_cause(members: Members):
    results = [
        SingleToolResult(text=CANNOT_ANSWER, failed=False, structured=None),
        SingleToolResult(text="a tool that failed and says why", failed=True, structured=None),
    ]
    members.house.chat_shell.tool_results = list(results)
    async with mcp_client(members.restricted) as client:
        answers = [await call(client, "search_knowledge", query="one") for _ in results]
    assert answers[0].model_dump() == answers[1].model_dump()
    assert texts_of(answers[0]) == [CANNOT_ANSWER]
    assert said(answers[0])["restricted"]["summary"] is None


async def test_a_passage_in_a_summary_is_cut_and_counted(members: Members):
    long = "Every traveller reports to the desk in the northern hall before the first train leaves the old station."
    await members.put("rule.md", long)
    members.house.chat_shell.tool_results = [released(summary=long[:90], observations=[long[90:]])]
    async with mcp_client(members.restricted) as client:
        found = await call(client, "search_knowledge", query="what to do")
    assert texts_of(found) == [CANNOT_ANSWER]
    assert "traveller" not in found.model_dump_json()
    assert members.house.turns.cuts.counted == [("ana", (members.base_id,))]


async def test_figures_become_marks_but_for_those_that_the_user_wrote(members: Members):
    members.house.chat_shell.tool_results = [released(summary="Of 4711 trips 1234 were late.", risks=["About 815."])]
    async with mcp_client(members.restricted) as client:
        found = said(await call(client, "search_knowledge", query="Why were 1234 late?"))
    summary = found["restricted"]["summary"]
    assert summary["summary"] == "Of [figure withheld] trips 1234 were late."
    assert summary["risks"] == ["About [figure withheld]."]


@both_eras
async def test_a_member_of_both_kinds_gets_passages_and_a_summary_apart(members: Members, mode: Mode):
    await members.put("manual.md", MANUAL)
    own = (await members.restricted.post(BASES, json={"name": "Own"})).json()["id"]
    body = b"# Notes\n\nMy own notes about hotels."
    put = await members.restricted.put(f"{BASES}/{own}/documents/notes.md", content=body)
    assert put.status_code == 201
    members.house.chat_shell.tool_results = [released()]
    async with mcp_client(members.restricted, mode) as client:
        both = [own, members.base_id]
        found = await call(client, "search_knowledge", query="hotels", knowledge_base_ids=both)
    assert [one["knowledge_base_id"] for one in said(found)["results"]] == [own]
    assert said(found)["restricted"]["knowledge_base_ids"] == [members.base_id]
    passages, summary = texts_of(found)
    assert "My own notes" in passages
    assert "Plan trips early." not in passages
    assert "My own notes" not in summary
    assert "ninety" not in found.model_dump_json()


async def test_a_search_without_names_is_charged_to_restricted_bases_only_where_no_other_answers(members: Members):
    await members.put("manual.md", MANUAL)
    own = (await members.restricted.post(BASES, json={"name": "Own"})).json()["id"]
    await members.restricted.put(f"{BASES}/{own}/documents/notes.md", content=b"# Notes\n\nMy notes about trains.")
    members.house.chat_shell.tool_results = [released()]
    async with mcp_client(members.restricted) as client:
        answered = await call(client, "search_knowledge", query="trains")
        assert not members.house.chat_shell.tool_calls
        unanswered = said(await call(client, "search_knowledge", query="zeppelins"))
    assert [one["knowledge_base_id"] for one in said(answered)["results"]] == [own]
    note = RESTRICTED_PASSED_OVER + members.base_id
    assert said(answered)["restricted"] == {"knowledge_base_ids": [members.base_id], "summary": None, "note": note}
    assert texts_of(answered)[1] == note
    assert unanswered["results"] == []
    assert unanswered["restricted"]["summary"]["summary"] == "Plan trips early."
    assert len(members.house.chat_shell.tool_calls) == 1


@both_eras
async def test_a_restricted_member_is_told_that_and_nothing_of_what_there_is(members: Members, mode: Mode):
    await members.put("manual.md", MANUAL)
    base = members.base_id
    async with mcp_client(members.restricted, mode) as client:
        refusals = [
            refusal_in(await call(client, "list_documents", knowledge_base_id=base)),
            refusal_in(await call(client, "list_documents", knowledge_base_id=base, after="doc_none")),
            refusal_in(await call(client, "read_document", knowledge_base_id=base, document="manual.md")),
            refusal_in(await call(client, "read_document", knowledge_base_id=base, document="missing.md")),
        ]
    assert len(set(refusals)) == 1
    assert "restricted" in refusals[0]


async def test_someone_elses_base_reads_like_none(members: Members):
    await members.put("manual.md", MANUAL)
    refusals: list[str] = []
    for http in (members.stranger, members.foreigner):
        async with mcp_client(http) as client:
            for base in (members.base_id, "kb_none"):
                for tool, more in (("list_documents", {}), ("read_document", {"document": "manual.md"})):
                    answer = await call(client, tool, knowledge_base_id=base, **more)
                    refusals.append(refusal_in(answer))
                answer = await call(client, "search_knowledge", query="x", knowledge_base_ids=[base])
                refusals.append(refusal_in(answer).replace("knowledge_base_ids[0]", "knowledge_base_id"))
            assert said(await call(client, "search_knowledge", query="hotels")) == {"results": [], "restricted": None}
            assert said(await call(client, "list_knowledge_bases"))["knowledge_bases"] == []
    assert len(set(refusals)) == 1
    assert refusals[0].startswith("knowledge_base_id: ")


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("search_knowledge", {}, "query"),
        ("search_knowledge", {"query": " \n"}, "query"),
        ("search_knowledge", {"query": 7}, "query"),
        ("search_knowledge", {"query": "x" * 20_001}, "query"),
        ("search_knowledge", {"query": "x", "knowledge_base_ids": "kb_1"}, "knowledge_base_ids"),
        ("search_knowledge", {"query": "x", "knowledge_base_ids": [1]}, "knowledge_base_ids[0]"),
        ("search_knowledge", {"query": "x", "max_results": 51}, "max_results"),
        ("search_knowledge", {"query": "x", "max_results": "3"}, "max_results"),
        ("search_knowledge", {"query": "x", "document": "a.md"}, "document"),
        ("list_documents", {}, "knowledge_base_id"),
        ("list_documents", {"knowledge_base_id": "kb_1", "limit": 0}, "limit"),
        ("list_knowledge_bases", {"after": "kb_none"}, "after"),
        ("read_document", {"knowledge_base_id": "kb_1", "document": "a", "offset": -1}, "offset"),
        ("read_document", {"knowledge_base_id": "kb_1", "document": "a", "offset": 10**18}, "offset"),
        ("read_document", {"knowledge_base_id": "kb_1", "document": "a", "max_characters": 60_000}, "max_characters"),
    ],
)
async def test_a_wrong_argument_is_named(members: Members, tool: str, arguments: dict[str, object], named: str):
    async with mcp_client(members.reader) as client:
        assert named in refusal_in(await call(client, tool, **arguments))


async def test_a_missing_document_and_a_gone_page_are_said_so(members: Members):
    async with mcp_client(members.reader) as client:
        base = members.base_id
        missing = await call(client, "read_document", knowledge_base_id=base, document="missing.md")
        gone = await call(client, "list_documents", knowledge_base_id=base, after="doc_gone")
    assert refusal_in(missing) == "document: There is no such document."
    assert refusal_in(gone).startswith("after")


async def test_an_offset_beyond_the_end_gives_an_empty_page(members: Members):
    await members.put("manual.md", MANUAL)
    async with mcp_client(members.reader) as client:
        page = said(
            await call(client, "read_document", knowledge_base_id=members.base_id, document="manual.md", offset=9999)
        )
    assert (page["text"], page["next_offset"]) == ("", None)


@both_eras
async def test_what_chat_shell_cannot_do_is_an_error_of_the_tool(members: Members, mode: Mode):
    members.house.chat_shell.tool_results = [
        ChatShellUnavailable("The model runner is of an earlier release."),
        SingleToolResult(text="", failed=False, structured={"decision": "answer"}),
    ]
    async with mcp_client(members.restricted, mode) as client:
        assert "earlier release" in refusal_in(await call(client, "search_knowledge", query="x"))
        assert "no summary" in refusal_in(await call(client, "search_knowledge", query="x"))


async def test_a_process_that_shuts_down_begins_no_restricted_search(members: Members):
    members.house.admission.close()
    async with mcp_client(members.restricted) as client:
        assert "shutting down" in refusal_in(await call(client, "search_knowledge", query="x"))
    assert not members.house.chat_shell.tool_calls


@both_eras
async def test_a_defect_tells_nothing(members: Members, mode: Mode):
    members.house.chat_shell.tool_results = [KeyError("Hotels cost at most ninety.")]
    async with mcp_client(members.restricted, mode) as client:
        with capture_logs() as logs, pytest.raises(MCPError) as defect:
            await call(client, "search_knowledge", query="x")
    assert "ninety" not in str(defect.value)
    assert "ninety" not in str(logs)
    assert [line["causes"] for line in logs if line["event"] == "Unexpected error"] == [["KeyError"]]


async def test_an_unknown_tool_is_a_wrong_parameter(members: Members):
    async with mcp_client(members.reader) as client:
        with pytest.raises(MCPError, match="search_knowledge, list_knowledge_bases"):
            await call(client, "delete_everything")


@both_eras
async def test_every_result_keeps_to_its_schema(members: Members, mode: Mode):
    async with mcp_client(members.reader, mode) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "search_knowledge", "list_knowledge_bases", "list_documents", "read_document"
    ]  # fmt: skip
    for tool in tools:
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.output_schema is not None
        assert all(field.get("description") for field in tool.input_schema["properties"].values())
