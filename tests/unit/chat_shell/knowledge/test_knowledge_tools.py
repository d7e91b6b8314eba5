"""What the knowledge tools answer, and how much of it a turn may have."""

import json
from datetime import UTC, datetime

import pytest

from shared.models.events import CitationAdded, SearchFinished, SearchResult
from shared.models.execution import AccessMode, Knowledge, KnowledgeBaseRef, TurnLimits
from shared.models.messages import AssistantMessage, Content, TextPart, ToolMessage, UserMessage
from shared.prompts import knowledge_base as texts
from shared.prompts import tool_results
from shared.prompts.attached_files import render_file
from shared.prompts.message_order import with_time_suffix
from tests.fakes.json_paths import at
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_requests import client_functions, execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, call, calls, end, says
from tests.fakes.safe_summaries import ScriptedSummaries, released
from tests.unit.chat_shell.turns.turn_cases import FunctionTool, Stage, only, results

SEARCH = texts.KNOWLEDGE_BASE_SEARCH
LIST = texts.KNOWLEDGE_BASE_LIST_DOCUMENTS
READ = texts.KNOWLEDGE_BASE_READ_DOCUMENT
ONE_SEARCH = call(SEARCH, '{"query": "leave"}', "c")


def stored() -> KnowledgeInMemory:
    return KnowledgeInMemory(
        {"kb_a": {"leave.md": "Thirty days.", "notice.md": "x" * 25_000}, "kb_b": {"leave.md": "None."}}
    )


async def answer_to(name: str, arguments: str, stage: Stage | None = None) -> str:
    stage = stage or Stage(ScriptedModel(calls(call(name, arguments, "c")), says("Done")), stored())
    await stage.run(execution_request(knowledge=knowledge("kb_a", "kb_b")))
    return results(stage.model.calls[1])[0]


async def test_a_search_may_name_some_of_the_bound_bases():
    rendered = json.loads(await answer_to(SEARCH, '{"query": "leave", "knowledge_base_ids": ["kb_b"]}'))
    assert rendered == {
        "documents": [
            {
                "document": 1,
                "title": "leave.md",
                "file_id": "doc_kb_b_leave.md",
                "knowledge_base_id": "kb_b",
                "heading_path": ["Top"],
                "content": "None.",
            }
        ]
    }


async def test_parameters_of_a_search_are_query_and_bases_only():
    stage = Stage(ScriptedModel(says("Hi")))
    await stage.run(execution_request())
    parameters = next(tool.parameters for tool in stage.model.calls[0].tools if tool.name == SEARCH)
    assert parameters is not None
    assert set(at(parameters, "properties")) == {"query", "knowledge_base_ids"}


async def test_a_search_that_finds_nothing_says_so():
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Hm")), KnowledgeInMemory({"kb_a": {}, "kb_b": {}}))
    assert await answer_to("", "", stage) == texts.NOTHING_FOUND


async def test_documents_are_listed_without_numbers():
    listing = json.loads(await answer_to(LIST, '{"knowledge_base_ids": ["kb_a"]}'))
    assert listing["total"] == 2
    assert [(file["title"], file["file_id"]) for file in listing["files"]] == [
        ("leave.md", "doc_kb_a_leave.md"),
        ("notice.md", "doc_kb_a_notice.md"),
    ]


async def test_a_long_list_says_that_it_is_not_whole():
    many = KnowledgeInMemory({"kb_a": {f"{n:03}.md": "text" for n in range(201)}, "kb_b": {}})
    text = await answer_to("", "", Stage(ScriptedModel(calls(call(LIST)), says("Done")), many))
    listing, note = text.split("\n\n")
    assert (json.loads(listing)["total"], len(json.loads(listing)["files"])) == (201, 200)
    assert note == texts.LISTING_INCOMPLETE


async def test_an_empty_list_says_so():
    stage = Stage(ScriptedModel(calls(call(LIST)), says("Hm")), KnowledgeInMemory({"kb_a": {}, "kb_b": {}}))
    assert await answer_to("", "", stage) == texts.NO_DOCUMENTS


@pytest.mark.parametrize("name", ["doc_kb_a_notice.md", "notice.md", "NOTICE.md"])
async def test_a_document_is_read_page_by_page_by_id_or_title(name: str):
    page = json.loads(await answer_to(READ, json.dumps({"document": name, "offset": 20_000})))["documents"][0]
    assert list(page) == ["document", "title", "file_id", "offset", "next_offset", "total_characters", "content"]
    assert (page["document"], page["offset"], page["next_offset"], len(page["content"])) == (1, 20_000, None, 5_000)
    first = json.loads(await answer_to(READ, json.dumps({"document": name})))["documents"][0]
    assert (first["next_offset"], len(first["content"])) == (10_000, 10_000)


async def test_a_title_that_two_documents_have_is_asked_back():
    text = await answer_to(READ, '{"document": "leave.md"}')
    assert text == texts.SEVERAL_SUCH_DOCUMENTS + "doc_kb_a_leave.md, doc_kb_b_leave.md"


async def test_an_unknown_document_is_told():
    assert await answer_to(READ, '{"document": "other.md"}') == texts.NO_SUCH_DOCUMENT


async def test_documents_of_unbound_bases_are_not_there():
    stage = Stage(ScriptedModel(calls(call(READ, '{"document": "doc_kb_b_leave.md"}')), says("Hm")), stored())
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert results(stage.model.calls[1]) == [texts.NO_SUCH_DOCUMENT]
    assert stage.stored.reads == []


@pytest.mark.parametrize("tool_call", [ONE_SEARCH, call(LIST), call(READ, '{"document": "leave.md"}')])
async def test_without_bound_bases_the_tools_are_offered_and_say_so(tool_call: object):
    stage = Stage(ScriptedModel([end(tool_call)], says("Hm")), stored())  # pyright: ignore[reportArgumentType]
    await stage.run(execution_request())
    assert {LIST, READ, SEARCH} <= {tool.name for tool in stage.model.calls[0].tools}
    assert results(stage.model.calls[1]) == [texts.NO_KNOWLEDGE_BASE]


# Restricted


async def test_a_restricted_turn_offers_the_search_alone_and_asks_the_sealed_room_only():
    script = calls(ONE_SEARCH, call(LIST), call(READ, "{}"), call("clock"), call(SEARCH, "{}"))
    stage = Stage(ScriptedModel(script, says("Sorry [1]")), stored(), [FunctionTool("clock")])
    events = await stage.run(
        execution_request(
            knowledge=knowledge("kb_a", mode=AccessMode.RESTRICTED),
            tools=client_functions(["theirs"]),
            limits=TurnLimits(max_knowledge_calls=1, max_model_calls=None),
        )
    )
    assert [tool.name for tool in stage.model.calls[0].tools] == [SEARCH, "theirs"]
    unknown = f"{tool_results.TOOL_UNKNOWN}{SEARCH}, theirs"
    assert results(stage.model.calls[1]) == [texts.CANNOT_ANSWER, unknown, unknown, unknown, texts.CANNOT_ANSWER]
    assert stage.stored.searches == []
    (asked,) = stage.summaries.asked
    assert (asked.ticket, asked.query, asked.knowledge_base_ids) == ("ticket_1", "leave", ("kb_a",))
    assert only(SearchFinished, events) == [SearchFinished(call_id="c", failed=False, results=())]


async def test_numbers_of_earlier_documents_are_not_cited_in_a_restricted_turn():
    full = Stage(ScriptedModel(calls(ONE_SEARCH), says("Done")), stored())
    await full.run(execution_request(knowledge=knowledge("kb_a")))
    history = tuple(
        message for message in full.model.calls[1].messages if isinstance(message, AssistantMessage | ToolMessage)
    )
    stage = Stage(ScriptedModel(says("As in [1].")), stored())
    restricted = knowledge("kb_a", mode=AccessMode.RESTRICTED)
    events = await stage.run(execution_request(knowledge=restricted, history=history))
    assert only(CitationAdded, events) == []


async def test_a_backend_that_says_restricted_is_believed():
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Sorry")), stored())
    stage.stored.mode = AccessMode.RESTRICTED
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert results(stage.model.calls[1]) == [texts.CANNOT_ANSWER]
    assert [hit for event in only(SearchFinished, events) for hit in event.results] == list[SearchResult]()


def mixed() -> Knowledge:
    modes = {"kb_a": AccessMode.RESTRICTED, "kb_b": AccessMode.FULL}
    bases = tuple(KnowledgeBaseRef(id=base_id, name=base_id, access_mode=mode) for base_id, mode in modes.items())
    return Knowledge(bases=bases, access_mode=AccessMode.RESTRICTED, ticket="ticket_1", user_words="")


async def test_a_released_summary_is_json_with_a_note_that_there_is_nothing_to_cite():
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well [1]")), stored(), summaries=ScriptedSummaries(released()))
    events = await stage.run(execution_request(knowledge=knowledge("kb_a", mode=AccessMode.RESTRICTED)))
    text = results(stage.model.calls[1])[0]
    assert text == f"{released().as_json()}\n\n{texts.RELEASED_NOTE}"
    assert only(CitationAdded, events) == []


async def test_a_search_of_both_kinds_answers_for_the_restricted_ones_and_names_the_others():
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored(), summaries=ScriptedSummaries(released()))
    await stage.run(execution_request(knowledge=mixed()))
    text = results(stage.model.calls[1])[0]
    assert text.endswith(f"{texts.RELEASED_NOTE}\n\n{texts.SEARCH_SEPARATELY}kb_b")
    assert [asked.knowledge_base_ids for asked in stage.summaries.asked] == [("kb_a",)]
    assert stage.stored.searches == []


async def test_of_both_kinds_the_others_are_named_also_when_nothing_is_released():
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored())
    await stage.run(execution_request(knowledge=mixed()))
    assert results(stage.model.calls[1]) == [f"{texts.CANNOT_ANSWER}\n\n{texts.SEARCH_SEPARATELY}kb_b"]


async def test_a_full_base_is_searched_as_ever_in_a_restricted_turn_and_its_hits_are_told_nobody():
    named = call(SEARCH, '{"query": "leave", "knowledge_base_ids": ["kb_b"]}', "c")
    stage = Stage(ScriptedModel(calls(named), says("None [1].")), stored())
    events = await stage.run(execution_request(knowledge=mixed()))
    assert json.loads(results(stage.model.calls[1])[0])["documents"][0]["content"] == "None."
    assert stage.summaries.asked == []
    assert [event.results for event in only(SearchFinished, events)] == [()]
    assert len(only(CitationAdded, events)) == 1


async def test_numbers_go_on_from_earlier_ones_in_a_restricted_turn():
    full = Stage(ScriptedModel(calls(ONE_SEARCH), says("Done")), stored())
    await full.run(execution_request(knowledge=knowledge("kb_a")))
    history = tuple(one for one in full.model.calls[1].messages if isinstance(one, AssistantMessage | ToolMessage))
    named = call(SEARCH, '{"query": "leave", "knowledge_base_ids": ["kb_b"]}', "d")
    stage = Stage(ScriptedModel(calls(named), says("None [3], as in [1].")), stored())
    events = await stage.run(execution_request(knowledge=mixed(), history=history))
    assert json.loads(results(stage.model.calls[1])[-1])["documents"][0]["document"] == 3
    assert [event.file_id for event in only(CitationAdded, events)] == ["doc_kb_b_leave.md"]


async def test_a_restricted_turn_whose_bases_say_nothing_of_it_is_restricted_in_all():
    bases = tuple(one.model_copy(update={"access_mode": AccessMode.FULL}) for one in mixed().bases)
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored())
    await stage.run(execution_request(knowledge=mixed().model_copy(update={"bases": bases})))
    assert results(stage.model.calls[1]) == [texts.CANNOT_ANSWER]
    assert stage.stored.searches == []


WEAK = (TextPart(text="What is weak"), TextPart(text="in it?"))


@pytest.mark.parametrize(
    ("user_words", "counted"),
    [
        ("Long ago: what of vaults?\nWhat is weak\nin it?", "Long ago: what of vaults?\nWhat is weak\nin it?"),
        ("", "What is weak\nin it?"),
    ],
    ids=["as the backend says", "a backend that does not say it"],
)
async def test_the_room_is_told_what_the_user_said_and_nothing_that_only_has_their_role(user_words: str, counted: str):
    history = (UserMessage(content="# Knowledge\nShelf 4,711"), AssistantMessage(text="A secret."))
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored())
    restricted = knowledge("kb_a", mode=AccessMode.RESTRICTED).model_copy(update={"user_words": user_words})
    await stage.run(execution_request(knowledge=restricted, history=history, prompt=WEAK))
    (asked,) = stage.summaries.asked
    assert asked.last_message == "What is weak\nin it?"
    assert asked.user_words == counted


FILE = TextPart(text=render_file("a.md", "0a1b", "Shelf 4,711 " * 2_000))


@pytest.mark.parametrize(
    ("prompt", "asked_for", "own"),
    [((FILE, *WEAK, FILE), "What is weak\nin it?", "What is weak\nin it?"), ((FILE,), FILE.text, "")],
    ids=["with a question", "alone"],
)
async def test_a_file_is_no_word_of_the_users_and_hides_none(prompt: Content, asked_for: str, own: str):
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored())
    await stage.run(execution_request(knowledge=knowledge("kb_a", mode=AccessMode.RESTRICTED), prompt=prompt))
    (asked,) = stage.summaries.asked
    assert (asked.last_message, asked.user_words) == (asked_for, own)


@pytest.mark.parametrize("content", ["What is weak\nin it?", WEAK])
async def test_a_turn_that_continues_from_results_answers_the_message_before_them(content: Content):
    sent = with_time_suffix(content, datetime(2026, 11, 22, 8, 30, tzinfo=UTC), "Europe/Berlin")
    asked_first = AssistantMessage(text="", tool_calls=(call("weather", "{}", "w"),))
    result = ToolMessage(call_id="w", content="Rain in Shelf 4,711.")
    stage = Stage(ScriptedModel(calls(ONE_SEARCH), says("Well")), stored())
    restricted = knowledge("kb_a", mode=AccessMode.RESTRICTED)
    history = (UserMessage(content="# Knowledge"), UserMessage(content=sent), asked_first, result)
    await stage.run(execution_request(knowledge=restricted, history=history, prompt=None))
    (asked,) = stage.summaries.asked
    assert (asked.last_message, asked.user_words) == ("What is weak\nin it?", "")


# Limits


async def test_calls_beyond_the_limit_are_refused():
    searches = calls(ONE_SEARCH, ONE_SEARCH.model_copy(update={"arguments": '{"query": "pay"}'}))
    stage = Stage(ScriptedModel(searches, searches, says("Done")), stored())
    request = execution_request(
        knowledge=knowledge("kb_b"), limits=TurnLimits(max_knowledge_calls=3, max_model_calls=None)
    )
    events = await stage.run(request)
    told = results(stage.model.calls[2])
    assert [text == texts.CALL_LIMIT_REACHED for text in told] == [False, False, False, True]
    assert len(stage.stored.searches) == len(only(SearchFinished, events)) == 3


@pytest.mark.parametrize(
    ("used_tokens", "warned", "refused"),
    [
        (50_000, False, False),
        (59_480, True, False),
        (59_300, False, False),
        (76_490, True, False),
        (76_500, False, True),
    ],
)
async def test_the_budget_warns_at_70_percent_and_refuses_at_90(used_tokens: int, warned: bool, refused: bool):
    ending = end(ONE_SEARCH, input_tokens=used_tokens - 5, output_tokens=5)
    stage = Stage(ScriptedModel([ending], says("Done")), stored())  # window 100,000, answer 10,000, margin 5,000
    await stage.run(execution_request(knowledge=knowledge("kb_b")))
    text = results(stage.model.calls[1])[0]
    assert text.endswith(texts.BUDGET_WARNING) == warned
    assert (text == f"{texts.BUDGET_EXHAUSTED}") == refused
    assert len(stage.stored.searches) == (0 if refused else 1)


async def test_without_reported_usage_the_prompt_is_estimated():
    ending = end(ONE_SEARCH, input_tokens=None, output_tokens=None)
    stage = Stage(ScriptedModel([ending], says("Done")), stored())
    history = (UserMessage(content="知" * 82_000),)
    await stage.run(execution_request(knowledge=knowledge("kb_b"), history=history))
    assert results(stage.model.calls[1]) == [texts.BUDGET_EXHAUSTED]


async def test_a_result_for_which_its_forerunners_left_no_room_is_withheld_whole():
    big = KnowledgeInMemory({"kb_a": {"big.md": "知" * 42_000}})
    script = calls(*(call(SEARCH, '{"query": "x"}', f"c{n}") for n in range(3)))
    stage = Stage(ScriptedModel(script, says("Hm")), big, result_tokens=100_000)
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    told = results(stage.model.calls[1])
    assert [text == texts.BUDGET_EXHAUSTED for text in told] == [False, False, True]
    assert [(event.failed, [hit.number for hit in event.results]) for event in only(SearchFinished, events)] == [
        (False, [1]),
        (False, [2]),
        (True, []),
    ]


async def test_a_result_larger_than_what_is_left_is_withheld():
    big = KnowledgeInMemory({"kb_a": {"big.md": "知" * 42_000}})
    script = [end(ONE_SEARCH, call("clock"), input_tokens=60_000)]
    stage = Stage(ScriptedModel(script, says("Hm")), big, [FunctionTool("clock")], result_tokens=100_000)
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert results(stage.model.calls[1]) == [texts.BUDGET_EXHAUSTED, "clock done"]


async def test_behind_90_percent_not_even_a_small_result_goes_in():
    two = KnowledgeInMemory({"kb_a": {"big.md": "知" * 42_000}, "kb_b": {"small.md": "text"}})
    named = [call(SEARCH, json.dumps({"query": "x", "knowledge_base_ids": [base]})) for base in ("kb_a", "kb_b")]
    stage = Stage(ScriptedModel([end(*named, input_tokens=40_000)], says("Hm")), two, result_tokens=100_000)
    await stage.run(execution_request(knowledge=knowledge("kb_a", "kb_b")))
    assert [text == texts.BUDGET_EXHAUSTED for text in results(stage.model.calls[1])] == [False, True]


def test_no_text_has_room_for_anything_of_a_request():
    of_results = {name: text for name, text in vars(tool_results).items() if not name.startswith("_")}
    named = vars(texts) | of_results
    constants = [value for name, value in named.items() if name.isupper() and isinstance(value, str)]
    assert len(constants) > 20
    assert not any(mark in text for text in constants for mark in ("{", "}", "%s"))
