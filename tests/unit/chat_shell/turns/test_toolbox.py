"""What is offered: the constants of both services, sorted by name; a name given twice stops the start."""

import pytest

from chat_shell.app import build_toolbox
from chat_shell.knowledge.services.knowledge_tools import KnowledgeBaseSearch, build_knowledge_tools
from chat_shell.tools.ports.tools import Tool
from chat_shell.turns.services.run_tools import Toolbox
from shared.environment import WrongSetting
from shared.models.execution import AccessMode, ToolDefinition
from shared.prompts import knowledge_tools as definitions
from shared.prompts.knowledge_tools import KNOWLEDGE_TOOLS, list_offered_tools
from shared.prompts.read_file import READ_FILE_TOOL
from tests.fakes.clock import FakeClock
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_requests import execution_request, knowledge
from tests.fakes.model_scripted import RecordingObserver
from tests.fakes.safe_summaries import ScriptedSummaries
from tests.unit.chat_shell.turns.turn_cases import FunctionTool

OURS = build_knowledge_tools(KnowledgeInMemory(), ScriptedSummaries())


def function(name: str) -> ToolDefinition:
    return ToolDefinition(name=name, description=None, parameters=None, strict=None)


def toolbox(*tools: Tool) -> Toolbox:
    return Toolbox(tools, FakeClock(), RecordingObserver(), 30.0)


@pytest.mark.parametrize("mode", AccessMode)
def test_a_toolbox_offers_what_the_backend_expects(mode: AccessMode):
    functions = (function("weather"), function("a_lamp"))
    request = execution_request(tools=functions, knowledge=knowledge(mode=mode))

    assert toolbox(*OURS).offer(request) == list_offered_tools(functions, mode)


def test_names_stand_in_order():
    names = [tool.name for tool in list_offered_tools((function("weather"), function("a_lamp")), AccessMode.FULL)]

    assert names == ["a_lamp", *sorted(KNOWLEDGE_TOOLS), "weather"]


def test_a_restricted_turn_is_offered_the_search_alone():
    assert list_offered_tools((), AccessMode.RESTRICTED) == (definitions.SEARCH,)
    restricted = [tool.definition.name for tool in OURS if tool.accepts_restricted]
    assert restricted == [definitions.SEARCH.name, READ_FILE_TOOL.name]


def test_a_further_tool_of_ours_is_offered_in_its_place():
    offered = toolbox(*OURS, FunctionTool("read_mail")).offer(execution_request())

    assert [tool.name for tool in offered] == [*sorted(KNOWLEDGE_TOOLS), "read_mail"]


@pytest.mark.parametrize("mode", AccessMode)
def test_attached_files_are_read_where_the_epoch_has_the_tool(mode: AccessMode):
    request = execution_request(knowledge=knowledge(mode=mode), reads_files=True)
    offered = toolbox(*OURS).offer(request)

    assert offered == list_offered_tools((), mode, reads_files=True)
    assert READ_FILE_TOOL in offered
    assert READ_FILE_TOOL not in toolbox(*OURS).offer(execution_request(knowledge=knowledge(mode=mode)))


@pytest.mark.parametrize("reads_files", [False, True])
def test_a_function_of_the_client_may_have_the_name_of_the_tool_that_reads_files(reads_files: bool):
    mine = function("read_file")
    request = execution_request(tools=(mine,), reads_files=reads_files)

    assert [tool for tool in toolbox(*OURS).offer(request) if tool.name == "read_file"] == [mine]


def test_a_name_given_twice_is_refused():
    with pytest.raises(ValueError, match="two tools have the name knowledge_base_search"):
        toolbox(*OURS, KnowledgeBaseSearch(KnowledgeInMemory(), ScriptedSummaries()))


def test_a_missing_knowledge_tool_is_refused():
    with pytest.raises(ValueError, match="no tool has the name knowledge_base_search"):
        toolbox(*(tool for tool in OURS if tool.definition.name != definitions.SEARCH.name))


def test_a_name_given_twice_stops_the_start_with_one_line():
    with pytest.raises(WrongSetting) as raised:
        build_toolbox((*OURS, FunctionTool("lamp"), FunctionTool("lamp")), FakeClock(), 30.0, {})

    assert str(raised.value) == "tools: two tools have the name lamp"
