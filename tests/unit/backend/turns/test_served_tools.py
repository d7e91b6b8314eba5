"""Tools of tool servers and skills in turns: what is fixed, what begins an epoch, and what is refused."""

from typing import Any

import pytest

from backend.conversations.domain.conversation_log import EntryKind, EpochReason
from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.domain.summary_request import request_tokens
from shared.errors import InvalidRequest
from shared.models.execution import AccessMode, NamedToolChoice, ServedTool, ToolDefinition
from shared.models.messages import UserMessage
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
from shared.prompts.knowledge_tools import tools_of_request
from tests.contract.knowledge_cases import make_base
from tests.fakes.openai_house import ADA, TurnHouse, open_house
from tests.unit.backend.turns.placing import change_agent, many, put_agent

JIRA: dict[str, Any] = {"type": "mcp", "server_label": "jira"}
SEARCH: dict[str, Any] = {**JIRA, "allowed_tools": ["search"]}
LETTERS = SkillCard(name="letters", description="Write letters.", accepts_restricted=False)


def served(tool: str, description: str = "Old.", server: str = "jira") -> ServedTool:
    name = f"{server}__{tool}"
    definition = ToolDefinition(name=name, description=description, parameters={"type": "object"}, strict=None)
    return ServedTool(definition=definition, server=server, tool=tool, accepts_restricted=False)


def offer(*tools: ServedTool, is_known: bool = True) -> OfferedTools:
    jira = ServerTools(server="jira", is_known=is_known, tools=tools)
    wiki = ServerTools(server="wiki", is_known=True, tools=(served("page", server="wiki"),))
    return OfferedTools(servers=(jira, wiki), skills=(LETTERS,))


BOTH = offer(served("read"), served("search"))


def offering(house: TurnHouse, offered: OfferedTools) -> None:
    """Let chat_shell offer this from now on, and the backend ask again."""
    house.scripted.offered = offered
    house.clock.advance(60)


def names(house: TurnHouse) -> list[list[str]]:
    return [[tool.definition.name for tool in request.served_tools] for request in house.sent]


def reasons(house: TurnHouse, conversation_id: str) -> list[str]:
    return [entry.reset.reason for entry in house.log_of(conversation_id) if entry.reset is not None]


async def test_definitions_take_their_room_in_the_window() -> None:
    async with open_house(*many(1)) as house:
        offering(house, offer(served("read", "word " * 4_000)))
        assert await house.count(tools=[JIRA]) - await house.count() > 5_000
        await house.ask(tools=[JIRA])
        assert request_tokens(house.sent[0]) > 5_000


async def test_without_a_word_of_them_nobody_asks_for_tools() -> None:
    async with open_house(*many(1)) as house:
        await house.ask()
        assert (names(house), house.scripted.asked_for_tools) == ([[]], 0)


async def test_a_list_stays_as_it_was_whatever_the_server_lists_later() -> None:
    async with open_house(*many(3)) as house:
        offering(house, BOTH)
        first = await house.ask(tools=[JIRA])
        offering(house, offer(served("read", "New."), served("write")))
        second = await house.ask(previous_response_id=first.id)
        await house.ask(previous_response_id=second.id, tools=[JIRA])
        assert house.sent[0].served_tools == (served("read"), served("search"))
        assert [request.served_tools for request in house.sent] == [house.sent[0].served_tools] * 3
        assert reasons(house, first.conversation_id) == [EpochReason.NEW_CONVERSATION]
        assert first.body["tools"] == [
            {"type": "mcp", "server_label": "jira", "allowed_tools": None, "require_approval": "never"}
        ]


async def test_another_selection_begins_an_epoch_and_leaves_other_servers_alone() -> None:
    async with open_house(*many(3)) as house:
        offering(house, BOTH)
        first = await house.ask(tools=[SEARCH])
        offering(house, offer(served("read", "New."), served("search", "New.")))
        wiki = {"type": "mcp", "server_label": "wiki"}
        second = await house.ask(previous_response_id=first.id, tools=[SEARCH, wiki])
        await house.ask(previous_response_id=second.id, tools=[])
        assert names(house) == [["jira__search"], ["jira__search", "wiki__page"], []]
        assert house.sent[1].served_tools[0] == served("search", "Old.")
        assert reasons(house, first.conversation_id)[1:] == [EpochReason.TOOLS_CHANGED] * 2


async def test_a_server_that_was_away_is_offered_once_it_is_known() -> None:
    async with open_house(*many(3)) as house:
        offering(house, offer(is_known=False))
        first = await house.ask(tools=[SEARCH])
        offering(house, BOTH)
        second = await house.ask(previous_response_id=first.id)
        offering(house, offer(served("search", "New.")))
        await house.ask(previous_response_id=second.id)
        assert names(house) == [[], ["jira__search"], ["jira__search"]]
        assert house.sent[2].served_tools == (served("search", "Old."),)
        assert reasons(house, first.conversation_id)[1:] == [EpochReason.TOOLS_CHANGED]


async def test_a_branch_has_the_same_bytes() -> None:
    async with open_house(*many(3)) as house:
        offering(house, BOTH)
        first = await house.ask(tools=[JIRA])
        await house.ask(previous_response_id=first.id)
        offering(house, offer(served("read", "New.")))
        await house.ask(previous_response_id=first.id)
        assert house.sent[2].served_tools == house.sent[0].served_tools
        assert house.sent[2].epoch == house.sent[0].epoch


async def test_a_branch_from_an_earlier_epoch_with_other_tools_begins_an_epoch() -> None:
    async with open_house(*many(4)) as house:
        offering(house, BOTH)
        first = await house.ask()
        second = await house.ask(previous_response_id=first.id, tools=[JIRA])
        branch = await house.ask(previous_response_id=first.id)
        assert house.sent[2].served_tools == house.sent[1].served_tools
        assert reasons(house, branch.conversation_id)[1:] == [EpochReason.TOOLS_CHANGED]
        again = await house.ask(previous_response_id=second.id)
        assert (again.conversation_id, house.sent[3].epoch) == (second.conversation_id, house.sent[1].epoch)


async def test_an_agent_brings_its_tools_and_skills() -> None:
    async with open_house(*many(2)) as house:
        offering(house, BOTH)
        await put_agent(house, tools=[SEARCH], skills=["letters"])
        first = await house.ask(model="helper", instructions="In French.")
        offering(house, OfferedTools(servers=(), skills=()))
        await house.ask(previous_response_id=first.id)
        assert names(house) == [["jira__search", "read_skill"]] * 2
        assert house.sent[1].system_prompt == house.sent[0].system_prompt
        (said,) = house.sent[0].history
        assert isinstance(said, UserMessage)
        lines = str(said.content).split("\n")
        assert (lines[0], "- letters: Write letters." in lines) == ("CA", True)
        assert house.sent[1].history[0] == said


async def test_a_change_of_the_agents_selection_begins_an_epoch() -> None:
    async with open_house(*many(2)) as house:
        offering(house, BOTH)
        agent_id = await put_agent(house, tools=[SEARCH])
        first = await house.ask(model="helper")
        await change_agent(house, agent_id, tools=[JIRA])
        await house.ask(previous_response_id=first.id)
        assert names(house) == [["jira__search"], ["jira__read", "jira__search"]]
        assert reasons(house, first.conversation_id)[1:] == [EpochReason.TOOLS_CHANGED]


async def test_an_agents_server_that_is_gone_leaves_its_turns_working() -> None:
    async with open_house(*many(1)) as house:
        offering(house, BOTH)
        await put_agent(house, tools=[JIRA], skills=["letters"])
        offering(house, OfferedTools(servers=(), skills=()))
        ended = await house.ask(model="helper")
        assert (names(house), ended.status) == ([[]], "completed")


@pytest.mark.parametrize(
    ("tool", "param", "words"),
    [
        ({"server_label": "none"}, "tools[0].server_label", "use one of 'jira', 'wiki'"),
        ({**SEARCH, "server_url": "http://x.test"}, "tools[0].server_url", "use one of 'jira', 'wiki'"),
        ({**SEARCH, "headers": {"a": "b"}}, "tools[0].headers", "named by the operator"),
        ({**SEARCH, "require_approval": "always"}, "tools[0].require_approval", "give 'never'"),
        ({**JIRA, "allowed_tools": ["read", "rm"]}, "tools[0].allowed_tools[1]", "'read', 'search'"),
        ({**JIRA, "allowed_tools": {"tool_names": ["rm"]}}, "tools[0].allowed_tools.tool_names[0]", "no tool 'rm'"),
    ],
)
async def test_what_is_not_there_is_refused_with_what_there_is(tool: dict[str, Any], param: str, words: str) -> None:
    async with open_house() as house:
        offering(house, BOTH)
        with pytest.raises(InvalidRequest) as raised:
            await house.ask(tools=[{"type": "mcp", **tool}])
        assert raised.value.param == param
        assert words in raised.value.message


async def test_where_no_server_is_set_up_the_refusal_says_so() -> None:
    async with open_house() as house:
        offering(house, OfferedTools(servers=(), skills=()))
        with pytest.raises(InvalidRequest) as raised:
            await house.start(ADA, tools=[JIRA])
        assert raised.value.param == "tools[0].server_label"
        assert raised.value.message.endswith("There is no tool server 'jira'; none is offered here.")


async def test_never_and_an_object_of_names_are_taken() -> None:
    async with open_house(*many(1)) as house:
        offering(house, BOTH)
        await house.ask(tools=[{**JIRA, "allowed_tools": {"tool_names": ["read"]}, "require_approval": "never"}])
        assert names(house) == [["jira__read"]]


async def test_a_function_may_not_have_the_name_of_such_a_tool() -> None:
    async with open_house() as house:
        offering(house, BOTH)
        with pytest.raises(InvalidRequest, match="jira__search"):
            await house.ask(tools=[JIRA, {"type": "function", "name": "jira__search"}])


async def test_shown_calls_may_be_sent_back() -> None:
    async with open_house(*many(1)) as house:
        call = {"type": "mcp_call", "id": "mcp_1", "server_label": "jira", "name": "search", "arguments": "{}"}
        sent_back = {**call, "output": "x", "error": None, "status": "completed", "approval_request_id": None}
        await house.ask(input=[{"role": "user", "content": "a"}, sent_back, {"role": "user", "content": "b"}])
        assert len(house.sent[0].history) == 1


async def test_a_restricted_turn_lists_no_skill_and_keeps_what_is_fixed() -> None:
    async with open_house(*many(3)) as house:
        offering(house, BOTH)
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        await put_agent(house, tools=[SEARCH], skills=["letters"], knowledge_base_ids=["kb_a"])
        first = await house.ask(model="helper")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        second = await house.ask(previous_response_id=first.id)
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        await house.ask(previous_response_id=second.id)
        stated = [
            entry.message.content
            for entry in house.log_of(first.conversation_id)
            if entry.kind is EntryKind.CUSTOM_INSTRUCTIONS and isinstance(entry.message, UserMessage)
        ]
        assert ["letters" in str(content) for content in stated] == [True, False, True]
        assert [request.knowledge.access_mode for request in house.sent][1] is AccessMode.RESTRICTED
        assert [request.served_tools for request in house.sent] == [house.sent[0].served_tools] * 3
        assert [tool.name for tool in tools_of_request(house.sent[1])] == ["knowledge_base_search"]


def choosing(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


async def test_a_served_tool_can_be_demanded_where_the_conversation_has_it() -> None:
    async with open_house(*many(2)) as house:
        offering(house, BOTH)
        first = await house.ask(tools=[SEARCH], tool_choice=choosing("jira__search"))
        assert house.sent[0].parameters.tool_choice == NamedToolChoice(name="jira__search")
        assert first.body["tool_choice"] == choosing("jira__search")
        await house.ask(previous_response_id=first.id, tool_choice=choosing("jira__search"))
        for asked in ({"previous_response_id": first.id}, dict[str, str]()):
            with pytest.raises(InvalidRequest) as caught:
                await house.start(ADA, **asked, tool_choice=choosing("jira__read"))
            assert caught.value.param == "tool_choice.name"
            assert ("'jira__search'" in caught.value.message) is bool(asked)


async def test_a_served_tool_that_a_restricted_turn_is_not_offered_cannot_be_demanded() -> None:
    async with open_house(*many(1)) as house:
        offering(house, BOTH)
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        tools = [SEARCH, {"type": "file_search", "vector_store_ids": ["kb_a"]}]
        with pytest.raises(InvalidRequest) as caught:
            await house.start(tools=tools, tool_choice=choosing("jira__search"))
        assert caught.value.param == "tool_choice.name"
