"""Results of tools that are longer than a model is shown: cut at once, and the same in the log and in every request."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.knowledge.domain.documents import render_documents
from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.turns.domain.document_cap import documents_within
from shared.models.events import MessagesAdded, SearchFinished
from shared.models.messages import ToolMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_LIST_DOCUMENTS, KNOWLEDGE_BASE_READ_DOCUMENT
from shared.prompts.tool_results import documents_left_out, within_tokens
from shared.tokens import estimate_tokens
from tests.examples import examples
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_requests import execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, call, calls, says
from tests.unit.chat_shell.turns.turn_cases import FunctionTool, Stage, only, results

SEARCH = call("knowledge_base_search", '{"query": "x"}', "c")
LONG = "word " * 20_000  # 25,000 tokens


def found(content: str, title: str = "t") -> FoundDocument:
    return FoundDocument(file_id="f", title=title, metadata={"heading_path": ["A"]}, content=content)


def documents_in(text: str) -> list[dict[str, Any]]:
    return json.loads(text.partition("\n\n")[0])["documents"]


@pytest.mark.parametrize(
    ("window_tokens", "setting", "limit"), [(100_000, 15_000, 15_000), (20_000, 15_000, 10_000), (100_000, 500, 500)]
)
async def test_a_long_text_is_cut_at_once_and_for_good(window_tokens: int, setting: int, limit: int):
    stage = Stage(
        ScriptedModel(calls(call("clock", "{}", "a")), says("Done")),
        tools=[FunctionTool("clock", ToolAnswer(text=LONG))],
        window_tokens=window_tokens,
        result_tokens=setting,
    )
    events = await stage.run(execution_request())
    expected = within_tokens(LONG, limit)
    assert results(stage.model.calls[1]) == [expected]
    assert only(MessagesAdded, events)[0].messages[-1] == ToolMessage(call_id="a", content=expected)


async def test_documents_are_dropped_whole_from_the_end():
    stored = KnowledgeInMemory({"kb_a": {f"{number}.md": "word " * 4_000 for number in range(5)}})  # 5,000 tokens each
    stage = Stage(ScriptedModel(calls(SEARCH), calls(SEARCH), says("Done")), stored)
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    first, second = results(stage.model.calls[2])
    assert [one["title"] for one in documents_in(first)] == ["0.md", "1.md"]
    assert documents_left_out(2, 5) in first
    assert [one["document"] for one in (*documents_in(first), *documents_in(second))] == [1, 2, 3, 4]
    assert [[hit.number for hit in event.results] for event in only(SearchFinished, events)] == [[1, 2], [3, 4]]


async def test_the_one_document_that_is_too_long_keeps_its_form():
    stored = KnowledgeInMemory({"kb_a": {"big.md": '"知"\n' * 20_000, "small.md": "text"}})
    stage = Stage(ScriptedModel(calls(SEARCH), says("Done")), stored)
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    (text,) = results(stage.model.calls[1])
    (only_one,) = documents_in(text)
    assert only_one["content"].startswith('"知"\n')
    assert only_one["content"].endswith('"知"\n')
    assert "are left out here" in only_one["content"]
    assert documents_left_out(1, 2) in text
    assert 7_000 < estimate_tokens(text) <= 15_000


@given(
    st.lists(st.text(st.sampled_from('a"\\\n知\x00'), max_size=200) | st.just("\x00" * 900), min_size=1, max_size=8),
    st.integers(200, 2_000),
)
@examples(300, few=60)
def test_the_limit_of_documents_holds(contents: list[str], limit_tokens: int):
    given_documents = [found(content, f"{place}") for place, content in enumerate(contents)]
    shown, notice = documents_within(given_documents, limit_tokens)
    text = render_documents(enumerate(shown, start=1)) + notice
    assert estimate_tokens(text) <= limit_tokens
    assert [one.title for one in shown] == [one.title for one in given_documents[: len(shown)]]
    assert (notice == "") == (len(shown) == len(given_documents))
    if len(shown) > 1:
        assert list(shown) == given_documents[: len(shown)]


async def test_a_page_of_a_document_ends_where_the_next_begins():
    book = "知识" * 20_000
    stage = Stage(
        ScriptedModel(calls(call(KNOWLEDGE_BASE_READ_DOCUMENT, '{"document": "book.md"}', "a")), says("Done")),
        KnowledgeInMemory({"kb_a": {"book.md": book}}),
        window_tokens=400_000,
    )
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    (page,) = documents_in(results(stage.model.calls[1])[0])
    assert page["content"] == book[: page["next_offset"]]
    assert 10_000 < len(page["content"]) < 15_000


async def test_a_listing_ends_with_a_whole_entry():
    stored = KnowledgeInMemory({"kb_a": {f"{number:03d} {'long name ' * 20}.md": "x" for number in range(150)}})
    stage = Stage(ScriptedModel(calls(call(KNOWLEDGE_BASE_LIST_DOCUMENTS, "{}", "a")), says("Done")), stored)
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    (text,) = results(stage.model.calls[1])
    listing = json.loads(text.partition("\n\n")[0])
    assert listing["total"] == 150
    assert 50 < len(listing["files"]) < 150
    assert estimate_tokens(text) <= 15_000


async def test_a_base_that_comes_whole_fits_a_result():
    stage = Stage(
        ScriptedModel(calls(SEARCH), says("Done")), KnowledgeInMemory({"kb_a": {"a.md": "x"}}), window_tokens=1_000_000
    )
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert [search[4] for search in stage.stored.searches] == [10_000]
