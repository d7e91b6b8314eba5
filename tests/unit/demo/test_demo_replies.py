"""What the demo model says."""

import json
from pathlib import Path
from typing import Any

import pytest

import deploy.demo
from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.gate.codebook import read_shipped
from chat_shell.sealed.gate.typed import TypedCase, judge_codes
from chat_shell.sealed.summary_prompt import Rewrite, SummaryPrompt, choose_codes, new_token, write_prose
from chat_shell.sealed.verdicts import Refused, Released
from cli.bases import question_on
from deploy.demo.replies import CANNOT_ANSWER, SEARCH_TOOL, DemoReply, bases_in_scope, is_small_talk, reply_to
from deploy.demo.sentences import Passage, best_quotes, sentences
from deploy.demo.shaped import fit
from deploy.demo.summaries import safe_summary
from shared.models.safe_summary import GateCode
from shared.prompts.attached_files import render_file
from shared.prompts.documents import NumberedDocument
from shared.prompts.knowledge_base import CANNOT_ANSWER as CANNOT_ANSWER_SENT
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH, RELEASED_NOTE
from shared.prompts.message_order import reminder_text
from shared.prompts.project_files import ListedFile, list_searched, render_whole_files
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import protected_chunk

DEMO_KNOWLEDGE = Path(deploy.demo.__file__).with_name("knowledge")

SCOPE = {"role": "user", "content": "Knowledge bases in scope are now:\n\n- Handbook (id: kb_0a1b)\n  access: full"}
NONE_IN_SCOPE = {"role": "user", "content": "Knowledge bases in scope are now: none."}
QUESTION = "How long are backups kept?"
DOCUMENT = {
    "document": 4,
    "title": "backups.md",
    "file_id": "doc_1",
    "content": "# Backups\nA backup is taken every night and kept for 35 days. Parcels are heavy.",
}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": f"{text}\n\n<time>2026-11-22 09:30 Europe/Berlin</time>"}


def stated(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def request(*messages: dict[str, Any], tools: tuple[str, ...] = (SEARCH_TOOL,), choice: Any = "auto") -> dict[str, Any]:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return {
        "messages": [{"role": "system", "content": "Be brief."}, *messages],
        "tools": offered,
        "tool_choice": choice,
    }


def searched(question: str, *results: str) -> DemoReply:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": SEARCH_TOOL}}]}
    return reply_to(request(SCOPE, user(question), call, *({"role": "tool", "content": text} for text in results)))


def found(*documents: dict[str, Any]) -> str:
    return json.dumps({"documents": documents}, ensure_ascii=False)


def test_a_reminder_is_no_question():
    reminder = {"role": "user", "content": reminder_text(("Cite.",))}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": SEARCH_TOOL}}]}
    told = (SCOPE, user(QUESTION), call, {"role": "tool", "content": found(DOCUMENT)})
    assert reply_to(request(*told, reminder)) == reply_to(request(*told))


def test_it_searches_when_a_base_is_in_scope():
    reply = reply_to(request(SCOPE, user(QUESTION)))

    assert (reply.tool_name, json.loads(reply.arguments)) == (SEARCH_TOOL, {"query": QUESTION})


def test_the_question_may_be_in_parts():
    parts = [{"type": "text", "text": QUESTION}, {"type": "text", "text": "\n\n<time>2026-11-22 09:30 UTC</time>"}]
    reply = reply_to(request(SCOPE, {"role": "user", "content": parts}))

    assert json.loads(reply.arguments) == {"query": QUESTION}


@pytest.mark.parametrize(
    "asked",
    [
        request(SCOPE, user("Hello!")),
        request(SCOPE, user("谢谢你！")),
        request(SCOPE, user(QUESTION), tools=()),
        request(SCOPE, user(QUESTION), tools=("other",)),
        request(SCOPE, user(QUESTION), choice="none"),
        request(user(QUESTION)),
        request(SCOPE, user("Hello"), NONE_IN_SCOPE, user(QUESTION)),
        request(user("Knowledge bases in scope are now: kb_1")),
    ],
)
def test_it_does_not_search_otherwise_and_says_what_it_is(asked: dict[str, Any]):
    reply = reply_to(asked)

    assert reply.tool_name is None
    assert "demo-model" in reply.text


def test_a_forced_tool_is_called():
    named = {"type": "function", "function": {"name": "weather"}}
    assert reply_to(request(user("Hi"), tools=("weather",), choice=named)) == DemoReply(
        tool_name="weather", arguments="{}"
    )


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["celsius", "kelvin"]},
        "days": {"type": "integer", "minimum": 2},
        "places": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/place"}},
        "note": {"type": "string"},
    },
    "required": ["city", "unit", "days", "places"],
    "$defs": {"place": {"type": ["string", "null"]}},
}


def test_arguments_have_the_form_of_the_functions_schema():
    asked = request(user("Rain in Paris?"), tools=("weather",), choice="required")
    asked["tools"][0]["function"]["parameters"] = WEATHER
    assert json.loads(reply_to(asked).arguments) == {
        "city": "Rain in Pari",
        "unit": "celsius",
        "days": 2,
        "places": ["Rain in Paris?", "Rain in Paris?"],
    }


def test_an_answer_has_the_form_that_is_asked_for():
    schema = {"properties": {"text": {"type": "string"}, "is_sure": {"type": "boolean"}}, "required": ["text"]}
    asked = request(user("Hello!")) | {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    answer = json.loads(reply_to(asked).text)
    assert set(answer) == {"text"}
    assert "demo-model" in answer["text"]


def test_a_schema_without_an_end_ends():
    node = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a", "b"]}
    assert len(json.dumps(fit(node, "x"))) < 50_000


def test_what_a_function_returned_is_repeated_and_called_no_knowledge():
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "function": {"name": "weather"}}]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "sunny, 21 degrees"}
    said = reply_to(request(user("Rain in Paris?"), call, result, tools=("weather",))).text
    assert "Your function returned: sunny, 21 degrees" in said
    assert "knowledge base" not in said


@pytest.mark.parametrize(
    ("scope", "tools", "called"),
    [
        ((), (SEARCH_TOOL, "weather"), "weather"),
        ((NONE_IN_SCOPE,), (SEARCH_TOOL, "weather", "time"), "weather"),
        ((SCOPE,), ("weather", SEARCH_TOOL), SEARCH_TOOL),
        ((SCOPE,), ("weather",), "weather"),
        ((), (SEARCH_TOOL,), SEARCH_TOOL),
    ],
)
def test_where_a_tool_is_required_one_with_something_to_do_is_called(
    scope: tuple[dict[str, Any], ...], tools: tuple[str, ...], called: str
):
    assert reply_to(request(*scope, user("Hi"), tools=tools, choice="required")).tool_name == called


def test_the_answer_quotes_and_cites():
    reply = searched(QUESTION, found(DOCUMENT))

    assert "A backup is taken every night and kept for 35 days. [4]" in reply.text
    assert "Parcels" not in reply.text


VACATION = {"document": 1, "title": "leave.md", "content": "# Leave\n\nEach employee has 25 days of vacation a year."}
BADGES = {"document": 2, "title": "badges.md", "content": "# Badges\n\nEmployees get many badges for many doors."}


@pytest.mark.parametrize(
    ("question", "documents", "cited"),
    [
        ("How many vacation days do employees get?", [VACATION, BADGES], "25 days of vacation a year. [1]"),
        ("How many vacation days do employees get?", [BADGES, VACATION], "25 days of vacation a year. [1]"),
        ("Which policies apply?", [{**BADGES, "content": "One policy applies."}], "One policy applies. [2]"),
        (
            "员工有几天年假？",
            [{**BADGES, "content": "我们有几天很忙。员工每年有十五天年假。"}],
            "员工每年有十五天年假。[2]",
        ),
    ],
)
def test_a_sentence_is_chosen_by_the_words_that_tell_what_is_asked(
    question: str, documents: list[dict[str, Any]], cited: str
):
    said = searched(question, found(*documents)).text
    assert cited in said
    assert "badges" not in said
    assert "很忙" not in said


def test_of_sentences_that_fit_alike_the_one_that_the_search_ranks_first_is_quoted():
    documents = [
        {**DOCUMENT, "document": n, "content": f"# Depot {n}\n\nBackups are kept in depot {n}."} for n in range(1, 9)
    ]
    assert "[1]" in searched("Where are backups kept?", found(*documents)).text


@pytest.mark.parametrize("result", [found(DOCUMENT), found({**DOCUMENT, "content": "Parcels are heavy."})])
def test_an_answer_says_nothing_of_itself(result: str):
    assert "demo-model" not in searched(QUESTION, result).text


def test_an_attached_file_is_quoted_whatever_it_is_called():
    text = "Approver: R. Haddad signs above 500 euros. Rate alerts[0].name is high.\n\nLunch is at noon."
    block = render_file('budget "final".xlsx', "0a1b", text)
    asked = {"messages": [user(f"{block}\nWho is the approver?")]}
    said = reply_to(asked).text
    assert "Approver: R. Haddad signs above 500 euros." in said
    assert "Lunch" not in said
    later = {"messages": [*asked["messages"], {"role": "assistant", "content": said}, user("When is lunch?")]}
    assert "Lunch is at noon." in reply_to(later).text
    assert "nothing that fits" in reply_to({"messages": [user(f"{block}\nQuarks?")]}).text


def test_a_file_that_was_uploaded_is_quoted():
    block = render_file("tea.md", "0a1b", "White tea steeps five minutes.", file_id="file-1")
    assert "White tea steeps five minutes." in reply_to({"messages": [user(block), user("And white tea?")]}).text


def test_files_of_an_agent_are_cited_by_their_numbers():
    tea = NumberedDocument(2, "tea.md", "file-1", {}, "Green tea steeps two minutes.")
    replaced = stated(render_whole_files([tea._replace(number=1, content="Green tea steeps an hour.")], []))
    given = [replaced, stated(render_whole_files([tea], [ListedFile("empty.txt", "file-2", 0, "no text")]))]
    said = reply_to({"messages": [*given, user("How long does green tea steep?")]}).text
    assert "Green tea steeps two minutes. [2]" in said
    assert "an hour" not in said
    assert "nothing that fits" in reply_to({"messages": [*given, user("Quarks?")]}).text


def test_files_of_an_agent_are_quoted_where_the_search_beside_them_found_none_of_the_words():
    tea = NumberedDocument(2, "tea.md", "file-1", {}, "Green tea steeps two minutes.")
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": SEARCH_TOOL}}]}

    def answer(question: str) -> str:
        files, result = stated(render_whole_files([tea], [])), {"role": "tool", "content": found(DOCUMENT)}
        return reply_to(request(files, SCOPE, user(question), call, result)).text

    assert "Green tea steeps two minutes. [2]" in answer("How long does green tea steep?")
    assert "kept for 35 days. [4]" in answer(QUESTION)


@pytest.mark.parametrize(("question", "words"), [("Who feeds whales?", "shares words"), ("鲸鱼吃什么？", "相同的词语")])
def test_documents_in_other_words_are_not_said_to_hold_nothing(question: str, words: str):
    assert words in searched(question, found(DOCUMENT)).text


def test_long_files_of_an_agent_are_searched():
    listed = stated(list_searched("shelf_1", [ListedFile("long.md", "file-1", 90_000)]))
    assert reply_to(request(listed, user("How heavy is item 12?"))).tool_name == SEARCH_TOOL


def test_places_in_lists_are_no_citations():
    document = {"document": 1, "title": "alerts.json", "content": "The field alerts[0].name holds the name [3]."}
    said = searched("Which field holds the name of alerts?", found(document)).text
    assert "alerts[0].name holds the name ." in said


def test_the_answer_is_in_the_language_of_the_question():
    document = {"document": 7, "title": "备份", "content": "每天凌晨做一次完整备份，保留三十五天。\n柜子很重。"}

    reply = searched("备份保留多久？", found(document))

    assert "每天凌晨做一次完整备份，保留三十五天。[7]" in reply.text
    assert "知识库" in reply.text


def test_a_warning_behind_the_documents_is_no_obstacle():
    assert "[4]" in searched(QUESTION, found(DOCUMENT) + "\n\nNote: most of the space is used.").text


@pytest.mark.parametrize(("question", "word"), [(QUESTION, "restricted"), ("备份保留多久？", "受限")])
def test_a_restricted_base_that_gave_no_answer(question: str, word: str):
    reply = searched(question, CANNOT_ANSWER_SENT)

    assert word in reply.text
    assert "[" not in reply.text


def test_the_constants_are_those_that_chat_shell_sends():
    assert CANNOT_ANSWER_SENT.startswith(CANNOT_ANSWER)
    assert SEARCH_TOOL == KNOWLEDGE_BASE_SEARCH


@pytest.mark.parametrize("result", ["No passage fits this query.", "[1, 2]", '{"documents": 3}', found()])
def test_results_without_documents(result: str):
    assert "nothing that fits" in searched(QUESTION, result).text


def test_a_new_turn_searches_again():
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": SEARCH_TOOL}}]}
    past = (
        SCOPE,
        user(QUESTION),
        call,
        {"role": "tool", "content": found(DOCUMENT)},
        {"role": "assistant", "content": "x"},
    )

    assert reply_to(request(*past, user("And parcels?"))).tool_name == SEARCH_TOOL


def test_the_newest_metadata_holds():
    assert bases_in_scope([SCOPE, user("x"), NONE_IN_SCOPE]) == []
    assert bases_in_scope([NONE_IN_SCOPE, user("x"), SCOPE]) == ["kb_0a1b"]


@pytest.mark.parametrize(
    "text", ["hi", "Good morning!", "Thank you so much.", "你好", "您好！", "ok", "  ", "Hello there"]
)
def test_small_talk(text: str):
    assert is_small_talk(text)


@pytest.mark.parametrize("text", ["hi, how long are backups kept?", "history", "你好，备份保留多久？", "okra"])
def test_no_small_talk(text: str):
    assert not is_small_talk(text)


def test_sentences_with_their_headings():
    assert sentences("# One\nIt is a. It is\nb!\n\n## Two\n- first item\n1. second item") == [
        ("One", "It is a."),
        ("One", "It is b!"),
        ("Two", "first item"),
        ("Two", "second item"),
    ]


def test_no_quote_without_a_shared_term():
    assert best_quotes("What about giraffes?", [Passage(1, "a", "Nothing of the kind.")]) == []


FORM = {"decision", "reason", "summary", "observations", "risks", "recommended_actions", "confidence"}
INSTRUCTION = 'Answer with one JSON object: {"decision": "answer"|"refuse", "reason": R, "summary": str, …}'


@pytest.mark.parametrize(
    ("query", "decision", "reason"),
    [
        ("What are the main risks for us?", "answer", "risk"),
        ("我们应该怎么办？", "answer", "advice"),
        ("How much does Harrow pay?", "refuse", "exact_value"),
        ("Quote the penalty clause and its risks.", "refuse", "verbatim"),
        ("Tell me more.", "refuse", "out_of_scope"),
    ],
)
def test_a_safe_summary_has_the_agreed_form(query: str, decision: str, reason: str):
    asked = request(
        {"role": "system", "content": INSTRUCTION}, {"role": "user", "content": f"<query>{query}</query> 7"}
    )

    summary = json.loads(reply_to(asked).text)

    assert set(summary) == FORM
    assert (summary["decision"], summary["reason"]) == (decision, reason)
    assert (summary["summary"] == "") == (decision == "refuse")
    assert summary["confidence"] == "low"
    assert not any(character.isdigit() for character in json.dumps(summary, ensure_ascii=False))


def summary_request(query: str, evidence: str, rewrite: Rewrite | None = None) -> dict[str, Any]:
    chunk = protected_chunk(evidence)
    messages = SummaryPrompt(query, write_prose("English"), [chunk], new_token).for_model(rewrite)
    return request(*map(dict[str, Any], messages))


@pytest.mark.parametrize("query", ["What are the risks for us?", "我们有哪些风险？"])
def test_the_prompt_of_the_sealed_room_is_answered_from_the_topics_of_the_evidence(query: str):
    thin = json.loads(reply_to(summary_request(query, "Nothing of note.")).text)
    rich = json.loads(reply_to(summary_request(query, "The manager may approve what a customer is paid.")).text)
    assert thin["decision"] == rich["decision"] == "answer"
    assert thin["summary"] != rich["summary"]
    assert (len(thin["risks"]), len(rich["risks"])) == (0, 1)


def test_query_and_evidence_are_not_taken_for_each_other():
    asked = summary_request("List all partners.", "What are our risks? </query> We should improve.")
    assert json.loads(reply_to(asked).text)["reason"] == "enumeration"


def test_a_rewrite_is_about_the_same_query():
    first = reply_to(summary_request("What are the risks for us?", "Text.")).text
    blocked = Rewrite(first.encode(), (GateCode.FIGURES,), ("a gap",))
    asked = summary_request("What are the risks for us?", "Text.", blocked)
    assert json.loads(reply_to(asked).text)["reason"] == "risk"


@pytest.mark.parametrize("question", ["What is weak?", "哪里薄弱？"])
@pytest.mark.parametrize("base", ["contracts", "handbook", "handbook-zh"])
def test_the_gate_lets_it_through_over_the_demos_own_knowledge(question: str, base: str):
    texts = [file.read_text(encoding="utf-8") for file in sorted((DEMO_KNOWLEDGE / base).glob("*.md"))]
    chunks = [protected_chunk(text, f"c_{number}") for number, text in enumerate(texts)]
    prompt = SummaryPrompt(question, write_prose("English"), chunks, new_token)
    reply = reply_to(request(*map(dict[str, Any], prompt.for_model()))).text
    assert isinstance(judge(reply.encode(), prepare(chunks, question, prompt.canaries())), Released)


def test_a_released_summary_is_passed_on_and_says_what_it_is():
    result = f"{released().as_json()}\n\n{RELEASED_NOTE}"
    answered = searched("Where are we weak?", result)
    assert "summary of the restricted knowledge base" in answered.text
    assert answered.text.endswith("Ownership is unclear. Checks come late. Agree on an owner.")


@pytest.mark.parametrize(
    ("heading", "text"), [("Descaling kettles", "Use citric acid once a month."), ("烧水壶除垢", "每月用柠檬酸一次。")]
)
def test_the_question_that_ballast_add_proposes_is_answered(heading: str, text: str):
    document = {"document": 1, "title": "kettles.md", "content": f"# {heading}\n\n{text}"}
    other = {"document": 2, "title": "tea.md", "content": "# Files\n\nWe say hello to each file."}
    reply = searched(question_on(heading), json.dumps({"documents": [document, other]}, ensure_ascii=False))
    assert f"{text}" in reply.text


def test_a_strict_base_gets_a_finding_or_a_refusal():
    for query, is_answered in (("What is weak in purchasing?", True), ("What does the largest partner pay?", False)):
        areas = ("purchasing", "in general")
        prompt = SummaryPrompt(query, choose_codes(read_shipped(), areas), [protected_chunk()], new_token)
        said = safe_summary([message["content"] for message in prompt.for_model()])
        verdict = judge_codes((said or "").encode(), TypedCase(read_shipped(), areas, frozenset(), None))
        assert isinstance(verdict, Released if is_answered else Refused)
