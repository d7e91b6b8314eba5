"""Tool calls in a turn: side by side, in order, and every failure a text for the model."""

import asyncio
import json

import pytest

from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.tools.ports.tools import ToolContext
from shared.errors import BallastError, InternalError, NotFound, PermissionDenied, Unavailable
from shared.models.events import (
    CitationAdded,
    MessagesAdded,
    SearchFinished,
    SearchStarted,
    TextDelta,
    TurnFinished,
)
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import tool_results
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.json_paths import at
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_requests import execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, call, calls, says
from tests.unit.chat_shell.turns.turn_cases import FunctionTool, Hanging, Stage, only, results

SEARCH = texts.KNOWLEDGE_BASE_SEARCH


def search(query: str, call_id: str = "") -> tuple[str, str, str]:
    return SEARCH, json.dumps({"query": query}), call_id


def stored() -> KnowledgeInMemory:
    return KnowledgeInMemory({"kb_a": {"leave.md": "Thirty days.", "notice.md": "Three months."}})


class Meeting(FunctionTool):
    """A tool that ends only when all calls of it have begun, and then in reverse order."""

    def __init__(self, name: str, expected: int):
        super().__init__(name)
        self._barrier = asyncio.Barrier(expected)
        self._turns = [asyncio.Event() for _ in range(expected)]
        self._turns[-1].set()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        place: int = at(arguments, "place")
        await self._barrier.wait()
        await self._turns[place].wait()
        if place:
            self._turns[place - 1].set()
        found = FoundDocument(file_id=f"doc_{place}", title=f"{place}.md", metadata={}, content="text")
        return ToolAnswer(documents=(found,))


class Failing(FunctionTool):
    """A tool that raises."""

    def __init__(self, name: str, error: Exception):
        super().__init__(name)
        self._error = error

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        raise self._error


async def test_calls_run_side_by_side_and_results_stand_in_call_order():
    script = calls(*(call("meet", f'{{"place": {place}}}', f"c{place}") for place in range(3)))
    stage = Stage(ScriptedModel(script, says("Done")), tools=[Meeting("meet", 3)])
    await stage.run(execution_request())
    rendered = [json.loads(text)["documents"][0] for text in results(stage.model.calls[1])]
    assert [(one["document"], one["file_id"]) for one in rendered] == [(1, "doc_0"), (2, "doc_1"), (3, "doc_2")]


async def test_equal_searches_of_one_answer_run_once():
    script = calls(
        *(call("clock", "{}", f"t{n}") for n in range(2)), *(call(*search("leave", f"c{n}")) for n in range(2))
    )
    clock = FunctionTool("clock")
    stage = Stage(ScriptedModel(script, says("Done")), stored(), [clock])
    await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert len(stage.stored.searches) == 1
    assert len(clock.calls) == 2
    assert all("Thirty days." in text for text in results(stage.model.calls[1])[2:])


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("nonsense", "{}", tool_results.TOOL_UNKNOWN),
        ("clock", '{"a"', tool_results.ARGUMENTS_NO_JSON),
        ("clock", "[]", tool_results.ARGUMENTS_NO_OBJECT),
        (SEARCH, "{}", tool_results.ARGUMENTS_REJECTED + "query: Field required"),
        (SEARCH, '{"query": " "}', tool_results.ARGUMENTS_REJECTED + "query: "),
        (SEARCH, '{"query": "a", "knowledge_base_ids": ["kb_b"]}', texts.BASE_NOT_IN_SCOPE),
    ],
)
async def test_what_is_wrong_with_a_call_is_told_to_the_model(name: str, arguments: str, told: str):
    stage = Stage(ScriptedModel(calls(call(name, arguments)), says("Sorry")), stored(), [FunctionTool("clock")])
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert results(stage.model.calls[1])[0].startswith(told)
    assert isinstance(events[-1], TurnFinished)
    assert stage.observer.failures == []
    assert stage.stored.searches == []


async def test_arguments_that_were_encoded_twice_are_understood():
    tool = FunctionTool("clock")
    stage = Stage(ScriptedModel(calls(call("clock", '"{\\"zone\\": \\"UTC\\"}"')), says("Noon")), tools=[tool])
    await stage.run(execution_request())
    assert tool.calls == [{"zone": "UTC"}]


async def test_an_exception_is_a_text_and_is_reported():
    error = RuntimeError("secret detail")
    script = calls(call("broken", "{}", "a"), call("clock", "{}", "b"))
    stage = Stage(ScriptedModel(script, says("Sorry")), tools=[Failing("broken", error), FunctionTool("clock")])
    events = await stage.run(execution_request())
    assert results(stage.model.calls[1]) == [tool_results.TOOL_FAILED, "clock done"]
    assert stage.observer.failures == [("broken", error)]
    assert sorted((tool, answer.failed) for tool, answer in stage.observer.answers) == [
        ("broken", True),
        ("clock", False),
    ]
    assert isinstance(events[-1], TurnFinished)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("down"), tool_results.TOOL_UNAVAILABLE),
        (PermissionDenied("no"), tool_results.TOOL_NOT_PERMITTED),
        (NotFound("gone"), texts.NO_SUCH_DOCUMENT),
        (InternalError("defect"), tool_results.TOOL_FAILED),
    ],
)
async def test_an_error_of_the_backend_is_a_text(error: BallastError, told: str):
    stage = Stage(ScriptedModel(calls(call(*search("leave", "c"))), says("Sorry")), stored())
    stage.stored.failure = error
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert results(stage.model.calls[1]) == [told]
    assert only(SearchFinished, events) == [SearchFinished(call_id="c", failed=True, results=())]
    assert stage.observer.failures == []


async def test_a_tool_that_takes_too_long_is_stopped_and_others_are_not():
    hanging = Hanging("slow")
    script = calls(call("slow"), call("clock"))
    stage = Stage(
        ScriptedModel(script, says("Sorry")), tools=[hanging, FunctionTool("clock")], tool_timeout_seconds=0.0
    )
    await stage.run(execution_request())
    assert results(stage.model.calls[1]) == [tool_results.TOOL_TIMED_OUT, "clock done"]
    assert hanging.cancelled


async def test_cancelling_the_consumer_cancels_the_tools():
    hanging = Hanging("slow")
    stage = Stage(ScriptedModel(calls(call("slow"))), tools=[hanging])
    consumer = asyncio.create_task(stage.run(execution_request()))
    await hanging.begun.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert hanging.cancelled
    assert [outcome for outcome, _ in stage.observer.finished] == ["cancelled"]


async def test_a_search_and_the_answer_that_cites_it():
    script = calls(call(*search("notice period", "c")))
    stage = Stage(ScriptedModel(script, says("Three months [", "2].")), stored())
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    assert stage.stored.searches == [("ticket_1", "notice period", ("kb_a",), 10, 10_000)]
    assert only(SearchStarted, events) == [SearchStarted(call_id="c", queries=("notice period",))]
    finished = only(SearchFinished, events)[0]
    assert [(hit.number, hit.filename, hit.text) for hit in finished.results] == [
        (1, "leave.md", "Thirty days."),
        (2, "notice.md", "Three months."),
    ]
    names = [type(event).__name__ for event in events]
    assert names.index("SearchStarted") < names.index("SearchFinished") < names.index("MessagesAdded")
    assert [event.text for event in only(TextDelta, events)] == ["Three months ", "[2]."]
    assert only(CitationAdded, events) == [
        CitationAdded(number=2, file_id="doc_kb_a_notice.md", filename="notice.md", index=13)
    ]


@pytest.mark.parametrize(("kind", "marks"), [("json_schema", 0), ("json_object", 0), ("text", 1)])
async def test_json_that_the_client_asked_for_holds_no_citations(kind: str, marks: int):
    parameters = PLAIN.model_copy(update={"text_format": {"type": kind}})
    written = '["leave", [1]]'
    stage = Stage(ScriptedModel(calls(call(*search("a", "c"))), says(written)), stored())
    events = await stage.run(execution_request(knowledge=knowledge("kb_a"), parameters=parameters))
    assert "".join(event.text for event in only(TextDelta, events)) == written
    assert len(only(CitationAdded, events)) == marks


async def test_the_log_keeps_the_models_own_words_and_numbers_go_on_in_the_next_turn():
    stage = Stage(ScriptedModel(calls(call(*search("a", "c"))), says("See 【1】")), stored())
    events = await stage.run(execution_request(knowledge=knowledge("kb_a")))
    history = tuple(message for added in only(MessagesAdded, events) for message in added.messages)
    assert history[-1].model_dump()["text"] == "See 【1】"

    later = Stage(ScriptedModel(calls(call(*search("b", "c")), text="As in [1], "), says("and [3].")), stored())
    events = await later.run(execution_request(knowledge=knowledge("kb_a"), history=history))
    assert [hit.number for hit in only(SearchFinished, events)[0].results] == [3, 4]
    assert [(mark.number, mark.index) for mark in only(CitationAdded, events)] == [(1, 6), (3, 4)]
