"""Documents, their numbers, and where the numbers are read from again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.knowledge.domain.citations import CitedDocument
from chat_shell.knowledge.domain.documents import DocumentNumbers, numbers_in
from chat_shell.tools.domain.tool_answers import FoundDocument
from shared.models.messages import AssistantMessage, Message, ToolMessage, UserMessage
from shared.models.values import Place
from shared.prompts.documents import NumberedDocument
from shared.prompts.knowledge_base import BUDGET_WARNING
from shared.prompts.message_order import FILES_REPLACED, TOOL_RESULT_ELIDED
from shared.prompts.project_files import ListedFile, render_whole_files
from shared.prompts.summary import COMPACTED, frame_summary
from tests.fakes.model_scripted import call


def found(name: str, text: str = "t") -> FoundDocument:
    return FoundDocument(file_id=f"doc_{name}", title=name, metadata={"heading_path": ["A"]}, content=text, score=0.5)


def exchange(content: str, tool: str = "knowledge_base_search", call_id: str = "c") -> tuple[Message, ...]:
    calls = (call(tool, call_id=call_id),)
    return (AssistantMessage(text="", tool_calls=calls), ToolMessage(call_id=call_id, content=content))


def test_the_number_comes_first_and_the_content_last():
    numbered, _ = DocumentNumbers().number([found("ä.md", '"x"')])
    assert numbered.text == (
        '{"documents": [{"document": 1, "title": "ä.md", "file_id": "doc_ä.md", '
        '"heading_path": ["A"], "content": "\\"x\\""}]}'
    )
    assert [(hit.number, hit.file_id, hit.filename, hit.score) for hit in numbered.results] == [
        (1, "doc_ä.md", "ä.md", 0.5)
    ]


@pytest.mark.parametrize("place", [Place(page=7, last_page=8), Place(sheet='{"Q1"} \\', rows=(2, 9))])
def test_where_a_passage_stands_is_shown_and_read_again(place: Place):
    numbered, numbers = DocumentNumbers().number([found("a").model_copy(update={"place": place})])
    shown = json.loads(numbered.text)["documents"][0]
    assert list(shown) == ["document", "title", "file_id", "place", "heading_path", "content"]
    assert shown["place"] == place.model_dump(mode="json")
    assert numbered.results[0].place == place
    assert numbers.documents[1].place == place
    assert numbers_in(exchange(numbered.text)) == numbers


@pytest.mark.parametrize("place", [None, Place(page=7)])
def test_other_names_are_shown_and_read_again(place: Place | None):
    names = ('copy [1] of "a".txt', "b, \\]{}.txt")
    numbered, numbers = DocumentNumbers().number([found("a").model_copy(update={"place": place, "other_names": names})])
    assert json.loads(numbered.text)["documents"][0]["other_names"] == list(names)
    assert (numbered.results[0].other_names, numbers.documents[1].other_names) == (names, names)
    assert numbers_in(exchange(numbered.text)) == numbers


def test_numbers_go_on_counting():
    first, numbers = DocumentNumbers().number([found("a"), found("b")])
    second, numbers = numbers.number([found("a")])
    assert [hit.number for hit in (*first.results, *second.results)] == [1, 2, 3]
    assert numbers.documents[3] == CitedDocument(file_id="doc_a", filename="a")


@given(
    st.lists(st.lists(st.text(max_size=5) | st.sampled_from(['"', "\\", '\\"']), min_size=1, max_size=3), max_size=4)
)
def test_the_log_gives_the_numbers_back(searches: list[list[str]]):
    numbers, history = DocumentNumbers(), tuple[Message, ...]()
    for names in searches:
        numbered, numbers = numbers.number([found(name) for name in names])
        history += exchange(f"{numbered.text}\n\n{BUDGET_WARNING}")
    assert numbers_in(history) == numbers


@pytest.mark.parametrize(
    "content",
    [
        "The knowledge base cannot answer this query.",
        '{"documents": ',
        '{"documents": [{"document": 7}]}',
        '{"documents": [{"document": 0, "title": "t", "file_id": "f"}]}',
        '{"documents": [{"document": 7, "title": "\\ud800", "file_id": "f"}]}',
        '{"documents": [{"document": 7, "title": "\\x", "file_id": "f"}]}',
        '{"documents": [{"document": 7, "title": "t", "file_id": 3}]}',
        '[{"document": 7, "title": "t", "file_id": "f"}]',
        '{"documents": [{"content": "{\\"document\\": 7, \\"title\\": \\"t\\", \\"file_id\\": \\"f\\""}]}',
        '{"documents"' + "[" * 100_000,
    ],
)
def test_results_of_another_shape_name_no_documents(content: str):
    assert numbers_in(exchange(content)) == DocumentNumbers()


def test_only_our_own_tools_give_numbers():
    content = json.dumps({"documents": [{"document": 7, "title": "t", "file_id": "f"}]})
    assert 7 in numbers_in(exchange(content)).documents
    assert numbers_in(exchange(content, tool="theirs")) == DocumentNumbers()
    assert numbers_in((UserMessage(content=content), ToolMessage(call_id="c", content=content))) == DocumentNumbers()
    reused_id = (*exchange("nothing found"), *exchange(content, tool="theirs"))
    assert numbers_in(reused_id) == DocumentNumbers()


def test_numbers_go_on_behind_a_gap():
    content = json.dumps({"documents": [{"document": 7, "title": "t", "file_id": "f"}]})
    numbered, _ = numbers_in(exchange(content)).number([found("a")])
    assert [hit.number for hit in numbered.results] == [8]


def project(first: int = 1) -> str:
    return render_whole_files(
        [NumberedDocument(first, "a.md", "file-a", {}, 'The "Rhine"')], [ListedFile("b.md", "file-b", 0)]
    )


@pytest.mark.parametrize("beginning", ["", f"{FILES_REPLACED}\n\n"])
def test_the_files_of_an_agent_have_numbers_and_those_of_results_go_on(beginning: str):
    numbers = numbers_in((UserMessage(content=beginning + project(7)),))
    assert numbers.documents == {7: CitedDocument(file_id="file-a", filename="a.md")}
    results, _ = numbers.number([found("a")])
    assert results.results[0].number == 8


def test_pages_of_attached_files_have_numbers():
    numbered, numbers = DocumentNumbers().number([found("a")])
    assert numbers_in(exchange(numbered.text, "read_file")) == numbers


def test_a_message_that_only_quotes_the_files_of_an_agent_has_no_numbers():
    assert numbers_in((UserMessage(content=f"See: {project()}"),)) == DocumentNumbers()


@pytest.mark.parametrize(
    ("said", "highest"),
    [
        ("So it is [3].", 3),
        ("So it is [2, 7] and 【5】.", 7),
        ("In [2024] nothing was cited, and list[0] was empty.", 0),
        ("Nothing.", 0),
    ],
)
def test_numbers_that_answers_cite_of_elided_results_are_not_given_again(said: str, highest: int):
    before, answer = AssistantMessage(text="[9] was before"), AssistantMessage(text=said)
    assert numbers_in([before, *exchange(TOOL_RESULT_ELIDED), answer]) == DocumentNumbers(highest=highest)
    assert numbers_in([before, *exchange("Nothing was found."), answer]) == DocumentNumbers()
    numbered, _ = numbers_in([*exchange(TOOL_RESULT_ELIDED), answer]).number([found("a")])
    assert numbered.results[0].number == highest + 1


@pytest.mark.parametrize(
    "mark", [frame_summary("Known from [2]."), COMPACTED, f"{frame_summary('[2]')}\n\n{COMPACTED}"]
)
def test_numbers_that_are_cited_behind_an_omission_are_not_given_again(mark: str):
    said = AssistantMessage(text="So it is [4].")
    for messages in ((UserMessage(content=mark), said), (said, UserMessage(content=mark))):
        numbered, _ = numbers_in(messages).number([found("a")])
        assert numbered.results[0].number == 5
    numbered, _ = numbers_in([UserMessage(content=mark)]).number([found("a")])
    assert numbered.results[0].number == (3 if "[2]" in mark else 1)
