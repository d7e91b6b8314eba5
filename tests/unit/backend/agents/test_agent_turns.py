"""Turns that name an agent as their model, through both APIs."""

from typing import Any

import orjson
import pytest

from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.services.running_turn import RunningTurn
from shared.errors import InvalidRequest, PermissionDenied, UnknownModel
from shared.models.execution import AccessMode
from shared.models.messages import UserMessage
from shared.prompts.agents import STRICT_KNOWLEDGE
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import ScriptedChatShell
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.fakes.parsed_requests import parse_chat_request
from tests.unit.backend.turns.placing import change_agent, many, put_agent

WEATHER: dict[str, Any] = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CLOCK: dict[str, Any] = {"type": "function", "name": "clock", "parameters": {"type": "object"}}


async def test_an_agent_gives_model_instructions_tools_and_parameters() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(house, tools=[WEATHER], parameters={"temperature": 0.25, "max_output_tokens": 99})
        ended = await house.ask(model="helper")
        sent = house.sent[0]
        assert sent.model == "demo-model"
        assert sent.system_prompt.startswith("# Knowledge bases")
        assert sent.history == (UserMessage(content="CA"),)
        assert [tool.name for tool in sent.tools] == ["weather"]
        assert (sent.parameters.temperature, sent.parameters.max_output_tokens) == (0.25, 99)
        assert (ended.body["model"], ended.body["temperature"]) == ("helper", 0.25)


async def test_what_a_request_says_is_added_or_wins() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(
            house,
            tools=[WEATHER],
            parameters={"temperature": 0.25, "text": {"verbosity": "low"}, "reasoning": {"effort": "low"}},
        )
        await house.ask(
            model="helper",
            instructions="In French.",
            tools=[CLOCK],
            temperature=1.5,
            text={"format": {"type": "json_object"}},
        )
        sent = house.sent[0]
        assert sent.system_prompt.startswith("In French.\n\n# Knowledge")
        assert [tool.name for tool in sent.tools] == ["clock", "weather"]
        assert sent.parameters.temperature == 1.5
        assert sent.parameters.verbosity == "low"
        assert sent.parameters.text_format == {"type": "json_object"}
        assert sent.parameters.reasoning_effort == "low"


async def test_a_strict_agent_answers_from_its_bases() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(house, knowledge_mode="strict")
        await house.ask(model="helper", instructions="In French.")
        assert house.sent[0].system_prompt.startswith("In French.\n\n# Knowledge")
        assert house.sent[0].history == (UserMessage(content=f"CA\n\n{STRICT_KNOWLEDGE}"),)


async def test_bases_are_bound_with_the_rights_of_the_caller() -> None:
    async with open_house(*many(3)) as house:
        for base_id in ("kb_a", "kb_b"):
            await house.knowledge.create_base(make_base(base_id, tenant="default"), "ada")
        await put_agent(house, knowledge_base_ids=["kb_a", "kb_b"], visibility="tenant")
        await house.ask(model="helper")
        of_bob = await house.ask(BOB, model="helper")
        await house.knowledge.set_member("kb_b", "bob", MemberRole.RESTRICTED_ANALYST)
        await house.ask(BOB, model="helper")
        mine, none, restricted = [request.knowledge for request in house.sent]
        assert [base.id for base in mine.bases] == ["kb_a", "kb_b"]
        assert mine.access_mode is AccessMode.FULL
        assert (none.bases, none.access_mode) == ((), AccessMode.FULL)
        assert b"kb_" not in orjson.dumps(of_bob.body)
        assert [base.id for base in restricted.bases] == ["kb_b"]
        assert restricted.access_mode is AccessMode.RESTRICTED


async def test_a_restricted_caller_is_refused_filters_whoever_has_set_them() -> None:
    green = {"type": "eq", "key": "kind", "value": "green"}
    search = {"type": "file_search", "vector_store_ids": ["kb_a"], "filters": green}
    async with open_house(*many(4)) as house:
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "ada")
        await put_agent(house, tools=[search], visibility="tenant")
        await house.ask(BOB, model="helper")
        await house.knowledge.set_member("kb_a", "bob", MemberRole.READER)
        first = await house.ask(BOB, tools=[search])
        of_agent = await house.ask(BOB, model="helper")
        await house.knowledge.set_member("kb_a", "bob", MemberRole.RESTRICTED_ANALYST)
        requests: list[tuple[dict[str, Any], str]] = [
            ({"model": "helper"}, "model"),
            ({"previous_response_id": of_agent.id}, "model"),
            ({"previous_response_id": first.id}, "tools"),
            ({"tools": [CLOCK, search]}, "tools[1].filters"),
            ({"model": "helper", "tools": [search]}, "tools[0].filters"),
        ]
        for request, param in requests:
            with pytest.raises(PermissionDenied, match="Filters cannot be used") as refused:
                await house.ask(BOB, **request)
            assert refused.value.param == param
        bare = {"type": "file_search", "vector_store_ids": ["kb_a"]}
        await house.ask(BOB, previous_response_id=first.id, tools=[bare])
        assert house.sent[-1].knowledge.access_mode is AccessMode.RESTRICTED


async def test_a_conversation_keeps_its_agent() -> None:
    async with open_house(*many(3)) as house:
        await put_agent(house, tools=[WEATHER])
        first = await house.ask(model="helper", instructions="In French.")
        second = await house.ask(previous_response_id=first.id)
        assert (second.body["model"], house.sent[1].system_prompt) == ("helper", house.sent[0].system_prompt)
        assert house.sent[1].tools == house.sent[0].tools
        fork = await house.ask(previous_response_id=first.id, input="Again")
        assert (fork.body["model"], house.sent[2].system_prompt) == ("helper", house.sent[0].system_prompt)
        assert fork.conversation_id != first.conversation_id
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation"]


async def test_another_model_takes_the_agent_away() -> None:
    async with open_house(*many(2)) as house:
        await put_agent(house, tools=[WEATHER])
        first = await house.ask(model="helper", instructions="In French.")
        await house.ask(previous_response_id=first.id, model="demo-model")
        assert house.sent[1].system_prompt.startswith("In French.\n\n# Knowledge")
        assert house.sent[1].tools == ()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"system_prompt": "You are a sailor."}, "instructions_changed"),
        ({"placement": "classic"}, "instructions_changed"),
        ({"tools": [WEATHER]}, "tools_changed"),
        ({"model": "other-model"}, "model_changed"),
    ],
)
async def test_an_agent_that_changes_begins_an_epoch(changed: dict[str, Any], reason: str) -> None:
    shell = ScriptedChatShell(*many(3), models=("demo-model", "other-model"))
    house = TurnHouse(chat_shell=shell)
    async with house.registry:
        agent_id = await put_agent(house)
        first = await house.ask(model="helper", instructions="In French.")
        await change_agent(house, agent_id, **changed)
        second = await house.ask(previous_response_id=first.id)
        await house.ask(previous_response_id=second.id)
        assert [each for _, each in house.observer.epochs] == ["new_conversation", reason]
        assert "In French." in house.sent[-1].system_prompt


async def test_an_agent_that_is_not_theirs_is_an_unknown_model_to_a_caller() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(house)
        await put_agent(house, "mine", BOB)
        with pytest.raises(UnknownModel) as foreign:
            await house.ask(BOB, model="helper")
        with pytest.raises(UnknownModel) as unknown:
            await house.ask(BOB, model="nobody")
        assert foreign.value.message == unknown.value.message.replace("nobody", "helper")
        assert "'mine'" in unknown.value.message
        assert "'demo-model'" in unknown.value.message


async def test_an_agent_that_is_gone_is_said_so() -> None:
    async with open_house(*many(1)) as house:
        agent_id = await put_agent(house)
        first = await house.ask(model="helper")
        await change_agent(house, agent_id, model="gone-model")
        with pytest.raises(UnknownModel, match=r"agent 'helper' uses the model 'gone-model'.*'demo-model'"):
            await house.ask(previous_response_id=first.id)
        await house.agents.delete(agent_id)
        with pytest.raises(UnknownModel, match="'helper'"):
            await house.ask(previous_response_id=first.id)


async def test_a_chat_client_uses_an_agent_and_is_recognised() -> None:
    async with open_house(*many(2)) as house:
        await put_agent(house)
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "In French."},
            {"role": "user", "content": "Hi"},
        ]
        for _ in range(2):
            turn = parse_chat_request(orjson.dumps({"model": "helper", "messages": messages, "max_tokens": 50}))
            running = await house.services.start(ADA, turn.request, "req_1")
            assert isinstance(running, RunningTurn)
            ended = await running.wait_until_ended()
            await house.registry.release(running)
            messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Once more"}]
            assert ended.body["model"] == "helper"
        assert house.sent[1].conversation_id == house.sent[0].conversation_id
        assert house.sent[1].system_prompt == house.sent[0].system_prompt
        assert house.sent[0].system_prompt.startswith("In French.\n\n# Knowledge")
        assert house.sent[0].history == (UserMessage(content="CA"),)
        assert house.sent[0].parameters.max_output_tokens == 50


async def test_a_tool_choice_may_name_a_function_of_the_agent() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(house, tools=[WEATHER])
        await house.ask(model="helper", tool_choice={"type": "function", "name": "weather"})
        with pytest.raises(InvalidRequest):
            await house.ask(model="helper", tool_choice={"type": "function", "name": "clock"})


@pytest.mark.parametrize("choice", [{"type": "file_search"}, "required"])
async def test_nobody_is_made_to_search_bases_that_they_may_not_use(choice: Any) -> None:
    async with open_house(*many(2)) as house:
        await house.knowledge.create_base(make_base("kb_a", tenant=ADA.tenant), ADA.user_id)
        await put_agent(house, visibility="tenant", knowledge_base_ids=["kb_a"])
        first = await house.ask(model="helper", tool_choice=choice)
        with pytest.raises(InvalidRequest) as caught:
            await house.ask(BOB, model="helper", tool_choice=choice)
        assert caught.value.param == "tool_choice"
        await house.knowledge.delete_base("kb_a")
        with pytest.raises(InvalidRequest):
            await house.ask(previous_response_id=first.id, tool_choice=choice)


async def test_counting_asks_nothing_and_leaves_nothing() -> None:
    async with open_house(*many(1)) as house:
        await put_agent(house, instructions="Be brief. " * 400)
        short = await house.count(model="demo-model")
        assert await house.count(model="helper") - short == pytest.approx(1000, abs=10)
        assert (house.sent, house.state.conversations, house.state.responses) == ([], {}, {})
        first = await house.ask(model="demo-model", input="x" * 4000)
        longer = await house.count(previous_response_id=first.id)
        assert longer - short == pytest.approx(1000, abs=30)
        assert len(house.state.responses) == 1
