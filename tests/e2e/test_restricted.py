"""A restricted analyst gets help through the whole pair, and neither they nor their model gets the text."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import orjson
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from cli.advice import ExitCode
from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE
from shared.prompts.safe_summary import SAFE_SUMMARY_PROMPT
from tests.e2e.ballast_command import ballast, environ_of, lines_of
from tests.e2e.client.knowledge_bases import Base, messages_of, new_base, searches, set_role, tool_texts
from tests.e2e.pair import ADMIN_KEY, Pair, PairOptions, start_model, start_pair
from tests.e2e.reserve import CHINESE_TALES, ENGLISH, LANGUAGES, SECONDARY, Language, tell_tales
from tests.e2e.turns import bare_client, everything_about, items_of, text_of, turn
from tests.fakes.mcp_client import call, mcp_client
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply
from tests.fakes.pictures import scan_of
from tests.servers.services import Launch
from tests.unit.backend.extraction.made_files import xlsx_of

PLACED = re.compile(
    r"""Cobalt ledger|heron-copy|[\\\\]?["'](?:place|other_names|sheet|slide|rows|last_page)[\\\\]?["']:"""
)
CHINESE = "# 储备规定\n\n青岚库储备量为四万八千二百升，只有沈砚之可以开启紫鹃阀门，每逢初七检查。"


@pytest.fixture(scope="module")
def house(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pair, str]]:
    """A pair with a secondary model of its own, and that one's address."""
    directory = tmp_path_factory.mktemp("restricted")
    second, url = start_model(launch_for_module, directory / "second", SECONDARY)
    second.wait_ready()
    settings = {
        "CHAT_SHELL_SAFE_SUMMARY_MODEL": SECONDARY,
        "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url,
        "CHAT_SHELL_SAFE_SUMMARY_API_KEY": "credential-of-the-second",
        "CHAT_SHELL_LOG_LLM_REQUESTS": "1",
    }
    yield start_pair(launch_for_module, directory / "pair", PairOptions(chat_shell=settings)), url


@pytest.fixture
def pair(house: tuple[Pair, str]) -> Pair:
    """The pair."""
    return house[0]


@pytest.fixture
async def main(pair: Pair) -> AsyncIterator[FakeModelControl]:
    """The main model, with nothing scripted."""
    async with pair.fresh_model() as control:
        yield control


@pytest.fixture
async def second(house: tuple[Pair, str]) -> AsyncIterator[FakeModelControl]:
    """The secondary model, with nothing scripted."""
    async with FakeModelControl(house[1]) as control:
        await control.reset()
        yield control


@pytest.fixture
def stocks(pair: Pair, request: pytest.FixtureRequest) -> tuple[str, Base]:
    """A base in both languages, and a restricted analyst of their own for the test."""
    analyst = f"analyst-{abs(hash(request.node.name))}"
    base = new_base(
        pair, "stocks", {"reserve-rules.md": ENGLISH, "储备规定.md": CHINESE}, **{analyst: "restricted_analyst"}
    )
    return analyst, base


def bytes_of(requests: list[RecordedRequest]) -> str:
    return "\n".join(request.body.decode() for request in requests)


def workbook(title: str) -> bytes:
    """Return a workbook whose only sheet has a title and a row about the hatch."""

    def fill(_: openpyxl.Workbook, sheet: Worksheet) -> None:
        sheet.title = title
        sheet.append(["Part", "State"])
        sheet.append(["reserve hatch", "rusty"])

    return xlsx_of(fill)


def newest_audit(pair: Pair) -> dict[str, Any]:
    with pair.http(ADMIN_KEY) as http:
        listed = http.get("/v1/audit/safe_summaries?limit=1&order=desc")
    assert listed.status_code == 200, listed.text
    return listed.json()["data"][0]


def exported_of(pair: Pair, user_id: str) -> str:
    with pair.http(ADMIN_KEY) as admin:
        return admin.get(f"/v1/users/{user_id}/export").text


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES.keys())
async def test_a_diagnosis_is_answered_from_a_released_summary(
    pair: Pair, main: FakeModelControl, second: FakeModelControl, stocks: tuple[str, Base], language: Language
) -> None:
    analyst, base = stocks
    await main.script(searches(language.query), Reply(text=(language.answer,)))
    await second.script(Reply(text=(orjson.dumps(language.summary).decode(),)))
    async with bare_client(pair, analyst) as client:
        response = await turn(client, language.question, tools=[base.tool])
        items = await items_of(client, response["conversation"]["id"])
    assert (response["status"], text_of(response)) == ("completed", language.answer)

    shown = tool_texts((await main.requests())[1])[0]
    summary, note = shown.split("\n\n")
    assert (orjson.loads(summary), note) == (language.summary, RELEASED_NOTE)
    assert tell_tales(bytes_of(await main.requests()) + orjson.dumps([response, items]).decode()) == []
    assert tell_tales(pair.chat_shell.log()) == []

    (asked,) = await second.requests()
    system, evidence = messages_of(asked)
    assert system == {"role": "system", "content": SAFE_SUMMARY_PROMPT}
    assert language.query in evidence["content"]
    assert set(tell_tales(evidence["content"])) == set(language.tell_tales)
    assert asked.headers["authorization"] == "Bearer credential-of-the-second"
    record = newest_audit(pair)
    assert (record["decision"], record["reason"]) == ("answer", "diagnosis")


async def test_an_export_has_what_the_main_model_was_sent_and_no_call_of_the_sealed_one(
    pair: Pair, main: FakeModelControl, second: FakeModelControl, stocks: tuple[str, Base], tmp_path: Path
) -> None:
    analyst, base = stocks
    honest = LANGUAGES["english"]
    await main.script(searches(honest.query), Reply(text=(honest.answer,)))
    await second.script(Reply(text=(orjson.dumps(honest.summary).decode(),)))
    async with bare_client(pair, analyst) as client:
        response = await turn(client, honest.question, tools=[base.tool])
    conversation = response["conversation"]["id"]
    environ = environ_of(pair, analyst, tmp_path)
    exports = [ballast(environ, "cache", "export", conversation, "--form", form) for form in ("openai", "folded")]
    for written in exports:
        assert (written.returncode, len(lines_of(written.stdout)), tell_tales(written.stdout)) == (0, 2, [])
    sent = [request.json_body for request in await main.requests()]
    bodies = [(body["messages"], body["tools"]) for body in sent]
    assert [(call["messages"], call["tools"]) for call in lines_of(exports[0].stdout)] == bodies
    assert len(await second.requests()) == 1
    refused = ballast(environ_of(pair, "a-stranger", tmp_path), "cache", "export", conversation)
    assert (refused.returncode, refused.stdout) == (ExitCode.NOT_FOUND, ""), refused.stderr


async def test_a_leaky_summary_is_rewritten_once_and_then_released(
    pair: Pair, main: FakeModelControl, second: FakeModelControl, stocks: tuple[str, Base]
) -> None:
    analyst, base = stocks
    honest = LANGUAGES["english"]
    leaky = {**honest.summary, "summary": "The Quillmark reserve holds 48,200 litres."}
    await main.script(searches(honest.query), Reply(text=(honest.answer,)))
    await second.script(*(Reply(text=(orjson.dumps(said).decode(),)) for said in (leaky, honest.summary)))
    async with bare_client(pair, analyst) as client:
        await turn(client, honest.question, tools=[base.tool])
    first, rewrite = await second.requests()
    *before, said, asked = messages_of(rewrite)
    assert before == messages_of(first)
    assert (said["role"], orjson.loads(said["content"])) == ("assistant", leaky)
    assert "quillmark" in asked["content"].lower()
    assert " phrases]" in pair.chat_shell.log()
    assert honest.summary["summary"] in tool_texts((await main.requests())[1])[0]
    assert tell_tales(bytes_of(await main.requests()) + pair.chat_shell.log()) == []


async def test_of_a_strict_base_codes_alone_reach_the_main_model_in_either_language(
    pair: Pair, main: FakeModelControl, second: FakeModelControl, stocks: tuple[str, Base]
) -> None:
    analyst, base = stocks
    with pair.http(pair.key("ann")) as http:
        chosen = {"restricted_grade": "strict", "routing_keywords": ["stock keeping"]}
        assert http.patch(f"/v1/knowledge_bases/{base.id}", json=chosen).status_code == 200
    finding = {"area": "stock keeping", "weakness": "single_person", "severity": "high", "action": "name_deputy"}
    form = {"decision": "answer", "reason": "none", "support": "one", "confidence": "high", "note": ENGLISH}
    leaky = orjson.dumps({**form, "findings": [finding, {**finding, "area": ENGLISH}]}).decode()
    said = {
        "english": "Stock keeping: train somebody who can stand in.",
        "chinese": "stock keeping：培养可以顶替的人。",
    }
    for name, language in LANGUAGES.items():
        await main.reset()
        await main.script(searches(language.query), Reply(text=(language.answer,)))
        await second.script(Reply(text=(leaky,)))
        async with bare_client(pair, analyst) as client:
            await turn(client, language.question, tools=[base.tool])
        shown = orjson.loads(tool_texts((await main.requests())[1])[0].split("\n\n")[0])
        assert (shown["recommended_actions"], shown["findings"]) == ([said[name]], [finding])
        assert tell_tales(bytes_of(await main.requests()) + pair.chat_shell.log()) == []
        assert newest_audit(pair)["preview"] == "stock keeping/single_person/high/name_deputy"


async def test_text_in_another_language_is_shown_only_where_the_owner_allows_it(
    pair: Pair, main: FakeModelControl, second: FakeModelControl
) -> None:
    english, chinese = LANGUAGES["english"], LANGUAGES["chinese"]
    base = new_base(pair, "库存", {"储备规定.md": CHINESE}, linguist="restricted_analyst")
    for is_allowed in (False, True):
        with pair.http(pair.key("ann")) as http:
            told = http.patch(f"/v1/knowledge_bases/{base.id}", json={"restricted_translation": is_allowed})
        assert told.json()["restricted_translation"] is is_allowed
        await main.script(searches(chinese.query), Reply(text=(english.answer,)))
        await second.script(Reply(text=(orjson.dumps(english.summary).decode(),)))
        async with bare_client(pair, "linguist") as client:
            await turn(client, english.question, tools=[base.tool])
        (shown,) = tool_texts((await main.requests())[-1])
        record = newest_audit(pair)
        if is_allowed:
            (asked,) = await second.requests()
            data = messages_of(asked)[1]["content"]
            assert set(tell_tales(data)) == set(CHINESE_TALES)
            assert "\nEnglish\n" in data
            assert english.summary["summary"] in shown
            assert record["decision"] == "answer"
        else:
            assert (shown, await second.requests()) == (CANNOT_ANSWER, [])
            assert (record["decision"], record["reason"]) == ("refuse", "insufficient_evidence")
            assert (record["chunks_found"], record["chunks_sent"]) == (1, 0)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Exactly how many litres does the stock hold?", "exact_value"),
        ("What is the definition of a reserve?", "definition"),
        ("List everyone who may open the valve.", "enumeration"),
        ("What is protected in this knowledge base?", "policy_probe"),
        ("库存一共多少升？", "exact_value"),
        ("储备的定义是什么？", "definition"),
        ("列出所有可以开启阀门的人。", "enumeration"),
        ("哪些内容是受保护的？", "policy_probe"),
    ],
)
async def test_what_restricted_access_does_not_give_is_refused_before_any_search(
    pair: Pair,
    main: FakeModelControl,
    second: FakeModelControl,
    stocks: tuple[str, Base],
    question: str,
    reason: str,
) -> None:
    analyst, base = stocks
    await main.script(searches("reserve"), Reply(text=("I cannot say.",)))
    async with bare_client(pair, analyst) as client:
        await turn(client, question, tools=[base.tool])
    assert tool_texts((await main.requests())[1]) == [CANNOT_ANSWER]
    assert await second.requests() == []
    record = newest_audit(pair)
    assert (record["decision"], record["reason"]) == ("refuse", reason)


async def test_where_restricted_passages_stand_and_what_copies_are_called_reaches_no_restricted_reader(
    pair: Pair, main: FakeModelControl, second: FakeModelControl, tmp_path: Path
) -> None:
    """A reader, who sees the places, is made an analyst, who sees them nowhere: not in what they had, nor anew."""
    ledger, deck, user = (
        workbook("Cobalt ledger"),
        scan_of("Only Imogen Vance may open the reserve hatch.", "It leaks."),
        "placed",
    )
    files = {"a.xlsx": ledger, "heron-copy.xlsx": ledger, "deck.pdf": deck}
    honest = LANGUAGES["english"]
    base = new_base(pair, "hatches", files, **{user: "reader"})
    answers = Reply(text=("It is rusty [1], and leaks [2].",))
    await main.script(searches(honest.query), answers, searches(honest.query), answers)
    chat = {"messages": [{"role": "user", "content": "How is it?"}], "tools": [base.tool]}
    path = f"/v1/knowledge_bases/{base.id}"
    async with bare_client(pair, user) as client, mcp_client(client) as mcp:

        async def reads() -> list[str]:
            """Return what each door says that no model answers at."""
            found = await client.post(f"{path}/search", json={"query": "reserve hatch"})
            stored = await client.post(f"/v1/vector_stores/{base.id}/search", json={"query": "reserve hatch"})
            chunks = await client.get(f"{path}/chunks?document=deck.pdf")
            called = await call(mcp, "search_knowledge", query="reserve hatch", knowledge_base_ids=[base.id])
            environ = environ_of(pair, user, tmp_path)
            exported = ballast(environ, "cache", "export", first["conversation"]["id"], "--form", "openai").stdout
            about = await everything_about(client, first)
            return [found.text, stored.text, chunks.text, repr(called), exported, exported_of(pair, user), about]

        first = await turn(client, "How is the valve?", tools=[base.tool], include=["file_search_call.results"])
        answered = await client.post("/v1/chat/completions", json=chat)
        assert [bool(PLACED.search(text)) for text in [*await reads(), answered.text]] == [True] * 8

        set_role(pair, base.id, user, "restricted_analyst")
        for _ in range(3):
            await main.script(searches(honest.query), Reply(text=(honest.answer,)))
            await second.script(Reply(text=(orjson.dumps(honest.summary).decode(),)))
        count = len(await main.requests())
        later = await turn(client, honest.question, tools=[base.tool], previous_response_id=first["id"])
        streamed = await client.post(
            "/v1/responses", json={"input": honest.question, "tools": [base.tool], "stream": True}
        )
        answered = await client.post("/v1/chat/completions", json=chat)
        assert await second.requests(), "a summary is made once, and released again to the same question"
        sent = bytes_of((await main.requests())[count:])
        shown = [*await reads(), await everything_about(client, later), streamed.text, answered.text, sent]
        shown.append(orjson.dumps(newest_audit(pair)).decode())
        assert [PLACED.findall(text) for text in shown] == [[]] * len(shown)
