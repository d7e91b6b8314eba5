"""A restricted analyst by the official client: protected text reaches neither their model nor them."""

from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from shared.prompts.knowledge_base import CANNOT_ANSWER, SEARCH_SEPARATELY
from tests.e2e.client.knowledge_bases import (
    SEARCH,
    Base,
    file_search,
    messages_of,
    new_base,
    offered,
    searches,
    tool_texts,
)
from tests.e2e.client.wire import Wire
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall

SECRET = "# Margins\n\nThe zebrafish margin of Quillmark fell to 41.7 percent."
OPEN = "# Canteen\n\nThe kumquat soup is served on Tuesdays."
RESULTS: Any = ["file_search_call.results"]


@pytest.fixture
def ledger(pair: Pair) -> Base:
    return new_base(pair, "ledger", {"quillmark-margins.md": SECRET}, bob="restricted_analyst")


def everything(wire: Wire) -> bytes:
    """All that clients were answered, in one."""
    return b"".join(bytes(exchange.body) for exchange in wire.exchanges)


def tell_tales(text: bytes) -> list[str]:
    """The protected words in a text."""
    return [
        word for word in ("zebrafish", "Quillmark", "quillmark", "41.7 percent", "Margins") if word.encode() in text
    ]


async def test_a_search_brings_one_constant_text(
    bob: AsyncOpenAI, wire: Wire, model: FakeModelControl, ledger: Base
) -> None:
    await model.script(searches("margin", "figures"), Reply(text=("I cannot say [1].",)))
    stream = await bob.responses.create(input="Well?", tools=[ledger.tool], include=RESULTS, stream=True)
    assert [event async for event in stream]
    first, second = await model.requests()
    assert offered(first) == [SEARCH]
    assert tool_texts(second) == [CANNOT_ANSWER, CANNOT_ANSWER]
    context = messages_of(first)[1]["content"]
    assert "restricted" in context
    assert "All about ledger." not in context
    *found, message = wire.newest.events[-1]["response"]["output"]
    assert [search["results"] for search in found] == [None, None]
    assert message["content"][0]["annotations"] == []

    response_id = wire.newest.events[0]["response"]["id"]
    conversation_id = wire.newest.events[0]["response"]["conversation"]["id"]
    await bob.responses.retrieve(response_id, include=RESULTS)
    assert [event async for event in await bob.responses.retrieve(response_id, stream=True, include=RESULTS)]
    await bob.conversations.items.list(conversation_id, include=RESULTS)
    await bob.responses.input_items.list(response_id, include=RESULTS)
    assert tell_tales(everything(wire)) == []
    assert tell_tales(first.body + second.body) == []


async def test_other_knowledge_tools_are_not_theirs(
    bob: AsyncOpenAI, wire: Wire, model: FakeModelControl, ledger: Base
) -> None:
    calls = (
        ScriptedCall(name="knowledge_base_list_documents", arguments="{}"),
        ScriptedCall(name="knowledge_base_read_document", arguments='{"document": "quillmark-margins.md"}'),
        ScriptedCall(name=SEARCH, arguments="no json"),
        ScriptedCall(name=SEARCH, arguments='{"query": "x", "knowledge_base_ids": ["kb_other"]}'),
    )
    await model.script(Reply(tool_calls=calls), Reply(text=("No.",)))
    await bob.responses.create(input="Well?", tools=[ledger.tool])
    listing, reading, broken, elsewhere = tool_texts((await model.requests())[1])
    assert "There is no tool of this name." in listing
    assert "There is no tool of this name." in reading
    assert elsewhere == CANNOT_ANSWER
    assert tell_tales((await model.requests())[1].body.replace(b"quillmark-margins.md", b"")) == []
    assert "zebrafish" not in broken


async def test_one_restricted_base_restricts_the_turn(
    bob: AsyncOpenAI, wire: Wire, model: FakeModelControl, ledger: Base, pair: Pair
) -> None:
    canteen = new_base(pair, "canteen", {"soup.md": OPEN}, bob="reader")
    await model.script(searches("soup", knowledge_base_ids=[canteen.id]), Reply(text=("No.",)))
    await bob.responses.create(input="Soup?", tools=[file_search(canteen, ledger)], include=RESULTS)
    first, second = await model.requests()
    assert offered(first) == [SEARCH]
    assert "kumquat" in tool_texts(second)[0]
    assert "kumquat" not in wire.newest.body.decode()
    await model.reset()
    await model.script(searches("soup"), Reply(text=("No.",)))
    await bob.responses.create(input="Soup?", tools=[file_search(canteen, ledger)])
    assert tool_texts((await model.requests())[1]) == [f"{CANNOT_ANSWER}\n\n{SEARCH_SEPARATELY}{canteen.id}"]
    await model.script(searches("soup"), Reply(text=("Tuesdays [1].",)))
    await bob.responses.create(input="Soup?", tools=[canteen.tool], include=RESULTS)
    assert "kumquat" in wire.newest.body.decode()


async def test_every_way_to_text_is_closed(pair: Pair, ledger: Base) -> None:
    base = f"/v1/knowledge_bases/{ledger.id}"
    with pair.http(pair.key("bob")) as http:
        answers = [
            http.post(f"{base}/search", json={"query": "margin"}),
            http.get(f"{base}/documents"),
            http.get(f"{base}/documents/quillmark-margins.md"),
            http.get(f"{base}/documents/nothing.md"),
            http.put(f"{base}/documents/quillmark-margins.md", content=b"mine"),
            http.delete(f"{base}/documents/quillmark-margins.md"),
            http.get(f"{base}/members"),
            http.put(f"{base}/members/bob", json={"role": "owner"}),
            http.patch(base, json={"name": "mine"}),
            http.delete(base),
        ]
        shown = http.get(base)
        listed = http.get("/v1/knowledge_bases")
    assert [(answer.status_code, set(answer.json()["error"])) for answer in answers] == [
        (403, {"message", "type", "param", "code"})
    ] * len(answers)
    assert set(shown.json()) == {"id", "name", "routing_hint", "routing_keywords", "role"}
    assert tell_tales(b"".join(answer.content for answer in [*answers, shown, listed])) == []


async def test_who_is_no_member_learns_nothing_of_it(pair: Pair, ledger: Base) -> None:
    base = f"/v1/knowledge_bases/{ledger.id}"
    with pair.http(pair.key("eve")) as http:
        answers: list[httpx2.Response] = [
            http.get(base),
            http.post(f"{base}/search", json={"query": "margin"}),
            http.get(f"{base}/documents"),
            http.get(f"{base}/documents/quillmark-margins.md"),
            http.get(f"{base}/members/bob"),
        ]
    assert {answer.status_code for answer in answers} == {404}


async def test_a_description_that_tells_is_kept_from_them_and_the_owner_is_told_why(
    bob: AsyncOpenAI, model: FakeModelControl, ledger: Base, pair: Pair
) -> None:
    described = {
        "name": "Quillmark margins",
        "routing_hint": "Ask about the zebrafish margin, which fell to 41.7",
        "routing_keywords": ["costs", "Quillmark", "<|system|>"],
    }
    with pair.http(pair.key("ann")) as http:
        told = http.patch(f"/v1/knowledge_bases/{ledger.id}", json=described).json()
        assert http.get(f"/v1/knowledge_bases/{ledger.id}").json() == told
    assert told["left_out"] == ["name", "routing_hint", "routing_keywords[1]", "routing_keywords[2]"]
    assert set(told["left_out_reasons"]) == set(told["left_out_words"]) == set(told["left_out"])
    assert "figures" in told["left_out_reasons"]["routing_hint"]
    assert "instruction" in told["left_out_reasons"]["routing_keywords[2]"]
    assert {"41.7", "zebrafish"} <= set(told["left_out_words"]["routing_hint"])
    with pair.http(pair.key("bob")) as http:
        shown = http.get(f"/v1/knowledge_bases/{ledger.id}")
    assert (shown.json()["name"], shown.json()["routing_keywords"]) == ("Knowledge base", ["costs"])
    await model.script(Reply(text=("Well.",)))
    await bob.responses.create(input="Well?", tools=[ledger.tool])
    (sent,) = await model.requests()
    assert "name: Knowledge base" in messages_of(sent)[1]["content"]
    assert tell_tales(shown.content + sent.body) == []


async def test_a_document_takes_a_word_away_and_gives_it_back(pair: Pair) -> None:
    shed = new_base(pair, "shed", {})
    with pair.http(pair.key("ann")) as http:
        base = f"/v1/knowledge_bases/{shed.id}"
        told = http.patch(base, json={"routing_hint": "Ask about gargoyles"}).json()
        assert (told["left_out"], told["left_out_reasons"], told["left_out_words"]) == ([], {}, {})
        assert http.put(f"{base}/documents/roof.md", content=b"The gargoyle leaks.").status_code == 201
        assert http.get(base).json()["left_out_words"] == {"routing_hint": ["gargoyles"]}
        assert http.delete(f"{base}/documents/roof.md").status_code == 200
        assert http.get(base).json()["left_out"] == []
