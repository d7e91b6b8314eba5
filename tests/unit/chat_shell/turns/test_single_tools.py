"""A tool that no model has asked for: the same rules as in a turn, and the summary as an object."""

import orjson
import pytest

from chat_shell.knowledge.services.knowledge_tools import build_knowledge_tools
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.single_tools import SingleTools
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall
from shared.models.values import JsonObject
from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE
from tests.fakes.clock import FakeClock
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_requests import execution_request, knowledge
from tests.fakes.model_scripted import OneModelDirectory, RecordingObserver, ScriptedModel
from tests.fakes.safe_summaries import ScriptedSummaries, released
from tests.unit.chat_shell.turns.turn_cases import FunctionTool

SEARCH = "knowledge_base_search"


async def nothing_offered() -> OfferedTools:
    return OfferedTools(servers=(), skills=())


class House:
    def __init__(self, summaries: ScriptedSummaries | None = None) -> None:
        self.stored = KnowledgeInMemory({"kb_1": {"rules.md": "Be kind."}})
        self.summaries = summaries or ScriptedSummaries()
        self.observer, self.model = RecordingObserver(), ScriptedModel()
        tools = (*build_knowledge_tools(self.stored, self.summaries), FunctionTool("read_mail"))
        toolbox = Toolbox(tools, FakeClock(), self.observer, 30.0)
        self.run = SingleTools(toolbox, OneModelDirectory(self.model), nothing_offered)

    async def __call__(self, mode: AccessMode, tool: str = SEARCH, **arguments: str):
        given: JsonObject = {"query": "kindness", **arguments}
        return await self.run(SingleToolCall(turn=turn(mode), tool=tool, arguments=given))


def turn(mode: AccessMode) -> ExecutionRequest:
    bound = knowledge("kb_1", mode=mode)
    words = "" if mode is AccessMode.FULL else "What is kind?"
    return execution_request(model="", prompt="What is kind?", knowledge=bound.model_copy(update={"user_words": words}))


async def test_a_restricted_search_gives_the_released_summary_as_text_and_as_an_object():
    house = House(ScriptedSummaries(released()))
    result = await house(AccessMode.RESTRICTED)
    assert result.structured == released().as_object()
    assert result.text == f"{released().as_json()}\n\n{RELEASED_NOTE}"
    assert not result.failed
    (asked,) = house.summaries.asked
    assert (asked.query, asked.last_message, asked.user_words) == ("kindness", "What is kind?", "What is kind?")
    assert (asked.ticket, asked.knowledge_base_ids) == ("ticket_1", ("kb_1",))
    assert house.stored.searches == []


async def test_without_a_summary_there_is_the_constant_text_alone():
    result = await House()(AccessMode.RESTRICTED)
    assert (result.text, result.structured, result.failed) == (CANNOT_ANSWER, None, False)


async def test_an_unrestricted_search_gives_passages_as_a_model_reads_them():
    result = await House()(AccessMode.FULL)
    (document,) = orjson.loads(result.text)["documents"]
    assert (document["document"], document["title"], document["content"]) == (1, "rules.md", "Be kind.")
    assert result.structured is None


@pytest.mark.parametrize(
    "tool", ["knowledge_base_list_documents", "knowledge_base_read_document", "read_file", "read_mail", "nope"]
)
async def test_a_restricted_turn_runs_the_search_alone(tool: str):
    house = House(ScriptedSummaries(released()))
    result = await house(AccessMode.RESTRICTED, tool)
    assert result.failed
    assert "Be kind." not in result.text
    assert house.stored.reads == []


async def test_wrong_arguments_are_told_in_a_turn_that_may_be_told():
    refused = await House()(AccessMode.FULL, query=" ")
    assert refused.failed
    assert "query" in refused.text
    assert (await House()(AccessMode.RESTRICTED, query=" ")).text == CANNOT_ANSWER


async def test_no_model_is_asked_and_the_observer_is_told():
    house = House()
    await house(AccessMode.FULL)
    assert [tool for tool, _ in house.observer.answers] == [SEARCH]
    assert house.observer.started == []
    assert house.model.calls == []
