"""What becomes of an agent's words in a conversation: changed, lost, forked, resent, unstored, restricted."""

import pytest

from backend.conversations.domain.conversation_log import EntryKind
from backend.knowledge.domain.knowledge import MemberRole
from backend.prompt.domain.block_policy import FAR_TOKENS
from backend.turns.domain.summary_request import count_fixed_tokens
from shared.models.events import ModelCallStarted
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import UserMessage
from shared.prompts.knowledge_base import KNOWLEDGE_SECTION
from shared.prompts.message_order import (
    INSTRUCTIONS_GONE,
    INSTRUCTIONS_REPLACED,
    INSTRUCTIONS_STAND,
    messages_of_request,
    reminder_text,
)
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import BOB
from tests.unit.backend.turns.asking import items_of, pop
from tests.unit.backend.turns.placing import agents_house, definition, letters, prompts_of, put_agent, searching

BOTH = pytest.mark.parametrize("placement", ["classic", "anchored"])
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


def texts(request: ExecutionRequest) -> list[str]:
    """Return the texts of the user's role in a request, without date suffixes."""
    messages = messages_of_request(request)
    return [str(one.content).partition("\n\n<time>")[0] for one in messages if isinstance(one, UserMessage)]


async def test_changed_instructions_are_appended_and_gone_ones_said_to_be() -> None:
    async with agents_house() as (house, _):
        agent_id = await put_agent(house)
        first = await house.ask(input="U1", model="helper")
        await house.agents.change(agent_id, definition(instructions="CA two"))
        second = await house.ask(input="U2", previous_response_id=first.id)
        third = await house.ask(input="U3", previous_response_id=second.id, model="demo-model")
        await house.ask(input="U4", previous_response_id=third.id)
        replaced = f"{INSTRUCTIONS_REPLACED}\n\nCA two"
        assert texts(house.sent[-1]) == ["CA", "U1", replaced, "U2", INSTRUCTIONS_GONE, "U3", "U4"]
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation"]
        assert house.observer.drifts == []


async def test_another_agent_replaces_the_words_of_the_one_before() -> None:
    async with agents_house() as (house, _):
        await put_agent(house)
        await put_agent(house, "other", instructions="Other CA")
        first = await house.ask(input="U1", model="helper")
        await house.ask(input="U2", previous_response_id=first.id, model="other")
        assert texts(house.sent[-1]) == ["CA", "U1", f"{INSTRUCTIONS_REPLACED}\n\nOther CA", "U2"]


@pytest.mark.parametrize("how", ["deleted", "left", "made anew"])
async def test_the_words_of_an_agent_that_the_caller_has_lost_are_not_sent(how: str) -> None:
    async with agents_house() as (house, uploads):
        agent_id = await put_agent(house, owner=BOB, visibility="tenant", instructions="Secret CA")
        uploads.project_files = "[secret project]"
        first = await house.ask(input="U1", model="helper")
        if how == "left":
            await house.agents.change(agent_id, definition(visibility="private"))
        else:
            await house.agents.delete(agent_id)
        if how == "made anew":
            house.clock.advance(1)
            await put_agent(house, owner=BOB, visibility="tenant", instructions="New CA")
        second = await house.ask(input="U2", previous_response_id=first.id, model="demo-model")
        await house.ask(input="U3", previous_response_id=second.id)
        assert [texts(request) for request in house.sent[1:]] == [["U1", "U2"], ["U1", "U2", "U3"]]
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation", "access_changed"]
        assert house.observer.drifts == []


async def test_reminders_of_an_agent_that_the_caller_has_lost_are_not_sent() -> None:
    reminded = [ModelCallStarted(call=1, reminder=reminder_text(("Secret.",))), *answer("A1")[1:]]
    async with agents_house(reminded) as (house, _):
        agent_id = await put_agent(house, owner=BOB, visibility="tenant", instructions="", reminder="Secret.")
        first = await house.ask(input="U1", model="helper")
        second = await house.ask(input="U2", previous_response_id=first.id)
        await house.agents.delete(agent_id)
        await house.ask(input="U3", previous_response_id=second.id, model="demo-model")
        assert [len(request.history) for request in house.sent] == [0, 3, 4]
        assert "Secret." in str(house.sent[1].history)
        assert "Secret." not in str(house.sent[2].history)
        assert "Secret." not in str(await prompts_of(house, first))


async def test_the_words_of_an_agent_that_was_left_but_may_be_used_stay() -> None:
    async with agents_house() as (house, _):
        await put_agent(house)
        first = await house.ask(input="U1", model="helper")
        await house.ask(input="U2", previous_response_id=first.id, model="demo-model")
        assert texts(house.sent[-1]) == ["CA", "U1", INSTRUCTIONS_GONE, "U2"]


async def test_a_switch_of_placement_begins_an_epoch_in_both_directions() -> None:
    async with agents_house(*(searching(f"s{n}", said=f"A{n}") for n in (1, 2, 3))) as (house, _):
        agent_id = await put_agent(house)
        ended = await house.ask(input="U1", model="helper")
        shown = [letters((await prompts_of(house, ended))[-1])]
        for number, placement in ((2, "classic"), (3, "anchored")):
            await house.agents.change(agent_id, definition(placement=placement))
            ended = await house.ask(input=f"U{number}", previous_response_id=ended.id)
            shown.append(letters((await prompts_of(house, ended))[0]))
        assert shown == ["S CA U1 TC TR R", "S U1 TC tr A1 CA U2", "S U1 TC TR A1 U2 TC TR A2 CA U3"]
        reasons = [reason for _, reason in house.observer.epochs]
        assert reasons == ["new_conversation", "instructions_changed", "instructions_changed"]
        assert house.observer.drifts == []


async def test_a_pointer_comes_once_for_each_epoch_of_the_conversation() -> None:
    long = "word " * (FAR_TOKENS * 4 // 5)
    async with agents_house(answer(long), answer("A2"), answer("A3"), answer(long), answer("A5")) as (house, _):
        await put_agent(house)
        ended = await house.ask(input="U1", model="helper")
        for number in (2, 3, 4, 5):
            ended = await house.ask(input=f"U{number}", previous_response_id=ended.id)
        assert texts(house.sent[-1]) == ["CA", "U1", INSTRUCTIONS_STAND, "U2", "U3", "U4", INSTRUCTIONS_STAND, "U5"]
        assert house.observer.drifts == []


@BOTH
async def test_what_stands_above_a_message_goes_with_it_and_comes_again(placement: str) -> None:
    async with agents_house(answer("A1"), answer("A2"), answer("A3")) as (house, uploads):
        await put_agent(house, placement=placement)
        first = await house.ask(input="U1", model="helper")
        uploads.files = ("[upload]",)
        second = await house.ask(input="U2", previous_response_id=first.id)
        assert await pop(house, second.conversation_id, 2) == ["message", "message"]
        uploads.files = ()
        third = await house.ask(input="U3", conversation=second.conversation_id)
        shown = [letters(call) for call in await prompts_of(house, third)]
        assert shown == ["S U1 A1 CA U3" if placement == "classic" else "S CA U1 A1 U3"]
        assert house.observer.drifts == []


@BOTH
async def test_a_fork_shares_what_was_sent_before_its_branch(placement: str) -> None:
    async with agents_house(*(answer(f"A{n}") for n in (1, 2, 3))) as (house, uploads):
        await put_agent(house, placement=placement)
        uploads.project_files = "[project]"
        first = await house.ask(input="U1", model="helper")
        await house.ask(input="U2", previous_response_id=first.id)
        fork = await house.ask(input="U3", previous_response_id=first.id)
        assert fork.conversation_id != first.conversation_id
        shown = [letters(call) for call in await prompts_of(house, fork)]
        assert shown == ["S U1 A1 CA P U3" if placement == "classic" else "S CA P U1 A1 U3"]
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation"]
        assert house.observer.drifts == []


@BOTH
async def test_a_client_that_resends_its_history_goes_on_in_its_conversation(placement: str) -> None:
    async with agents_house(*(answer(f"A{n}") for n in (1, 2))) as (house, _):
        await put_agent(house, placement=placement)
        first = await house.ask(input="U1", model="helper")
        items = [{"role": "user", "content": "U1"}, {"role": "assistant", "content": "A1"}]
        second = await house.ask(input=[*items, {"role": "user", "content": "U2"}], model="helper")
        assert second.conversation_id == first.conversation_id
        shown = [letters(call) for call in await prompts_of(house, second)]
        assert shown == ["S U1 A1 CA U2" if placement == "classic" else "S CA U1 A1 U2"]
        assert house.observer.drifts == []


async def test_of_equal_histories_the_one_with_the_same_agent_goes_on() -> None:
    items = [{"role": "user", "content": "U1"}, {"role": "assistant", "content": "A1"}]
    async with agents_house(*(answer("A1") for _ in range(6))) as (house, _):
        await put_agent(house)
        await put_agent(house, "other", instructions="Other CA")
        await put_agent(house, "moving", placement="classic")
        first = {name: await house.ask(input="U1", model=name) for name in ("helper", "other", "moving")}
        for name, began in first.items():
            later = await house.ask(input=[*items, {"role": "user", "content": "U2"}], model=name)
            assert later.conversation_id == began.conversation_id


@BOTH
async def test_an_unstored_turn_has_the_words_too_and_leaves_nothing(placement: str) -> None:
    async with agents_house(answer("A1")) as (house, uploads):
        await put_agent(house, placement=placement, reminder="Be kind.")
        uploads.project_files = "[project]"
        await house.ask(input="U1", model="helper", store=False)
        assert texts(house.sent[0]) == ["CA", "[project]", "U1"]
        assert house.sent[0].reminder == "Be kind."
        assert (house.state.entries, house.state.texts) == ({}, {})


@BOTH
async def test_a_restricted_turn_has_the_words_and_no_word_of_them_is_the_users(placement: str) -> None:
    async with agents_house(answer("A1"), answer("A2")) as (house, uploads):
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
        await house.knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
        await put_agent(house, placement=placement, knowledge_base_ids=["kb_a"])
        uploads.project_files, uploads.files = "[project]", ("[upload]",)
        first = await house.ask(input="U1", model="helper")
        second = await house.ask(input="U2", previous_response_id=first.id)
        assert [one.knowledge.access_mode for one in house.sent] == [AccessMode.RESTRICTED] * 2
        assert [one.knowledge.user_words for one in house.sent] == ["U1", "U1\nU2"]
        await house.knowledge.remove_member("kb_a", "ada")
        shown = (await prompts_of(house, second))[0]["messages"]
        kept = [one["content"] for one in shown if one["kind"] in ("custom_instructions", "project_files", "file")]
        assert sorted(kept) == ["CA", "[project]", "[upload]", "[upload]"]


@BOTH
async def test_a_turn_that_continues_from_results_has_the_words_where_they_stood(placement: str) -> None:
    async with agents_house(function_calls("c1"), function_calls("c2"), answer("A1"), answer("A2")) as (house, _):
        await put_agent(house, placement=placement, tools=[WEATHER])
        ended = await house.ask(input="U1", model="helper")
        for call_id in ("c1", "c2"):
            output = {"type": "function_call_output", "call_id": call_id, "output": "Rain."}
            ended = await house.ask(input=[output], previous_response_id=ended.id)
        shown = [letters(call) for call in await prompts_of(house, ended)]
        assert shown == ["S CA U1 TC TR TC TR"]
        ended = await house.ask(input="U2", previous_response_id=ended.id)
        shown = [letters(call) for call in await prompts_of(house, ended)]
        classic = "S U1 TC tr TC tr A1 CA U2"
        assert shown == [classic if placement == "classic" else "S CA U1 TC TR TC TR A1 U2"]
        assert house.observer.drifts == []


async def test_what_moves_costs_what_prompts_say() -> None:
    async with agents_house(*(answer(f"A{n}") for n in (1, 2))) as (house, uploads):
        await put_agent(house, placement="classic", instructions="Be brief. " * 20)
        uploads.project_files = "word " * 1_000
        first = await house.ask(input="U1", model="helper")
        second = await house.ask(input="U2", previous_response_id=first.id)
        (call,) = await prompts_of(house, second)
        system, user = call["messages"][0], call["messages"][1]
        assert (call["placement"], call["first_difference"], call["shortfall"]) == ("classic", None, "policy")
        assert call["reused_tokens"] >= system["tokens"]
        assert call["rewritten_tokens"] == 50 + 1_250 + user["tokens"]
        assert [one["reused"] for one in call["messages"]] == [True, *[False] * 5]


async def test_an_agents_own_system_prompt_replaces_the_default_and_its_instructions_join_it() -> None:
    default = "Default for {{user.name}} of {{user.tenant}} with {{agent.name}} on {{model}}; {{unknown}} {{user.name"
    async with agents_house(*(answer("A") for _ in range(4)), system_prompt=default) as (house, _):
        await put_agent(house, system_prompt="I am {{agent.name}} for {{user.id}}.", placement="classic")
        await put_agent(house, "empty", system_prompt="", instructions="")
        await put_agent(house, "plain")
        await house.ask(model="helper", instructions="In {{model}}.")
        await house.ask(model="empty")
        await house.ask(model="plain")
        await house.ask()
        filled = "Default for ada of default with {} on demo-model; {{{{unknown}}}} {{{{user.name"
        assert [request.system_prompt for request in house.sent] == [
            f"I am helper for ada.\n\nCA\n\nIn {{{{model}}}}.\n\n{KNOWLEDGE_SECTION}",
            KNOWLEDGE_SECTION,
            f"{filled.format('plain')}\n\n{KNOWLEDGE_SECTION}",
            f"{filled.format('')}\n\n{KNOWLEDGE_SECTION}",
        ]
        assert [texts(request) for request in house.sent] == [["Hi"], ["Hi"], ["CA", "Hi"], ["Hi"]]


async def test_a_new_default_waits_for_the_next_epoch() -> None:
    async with agents_house(answer("A")) as (before, _):
        first = await before.ask()
    async with agents_house(state=before.state, system_prompt="New default.") as (house, _):
        second = await house.ask(previous_response_id=first.id)
        await house.ask(previous_response_id=second.id, instructions="In French.")
        opened = [request.system_prompt.partition("\n\n")[0] for request in (*before.sent, *house.sent)]
        assert opened == ["# Knowledge bases", "# Knowledge bases", "New default."]
        assert house.observer.drifts == []


async def test_only_messages_of_the_user_are_kept_as_such() -> None:
    async with agents_house(answer("A1")) as (house, uploads):
        await put_agent(house)
        uploads.project_files, uploads.files = "[project]", ("[upload]", "[another]")
        first = await house.ask(input="U1", model="helper")
        kinds = [entry.kind for entry in house.log_of(first.conversation_id)]
        assert kinds == [
            EntryKind.CUSTOM_INSTRUCTIONS,
            EntryKind.PROJECT_FILES,
            EntryKind.FILE,
            EntryKind.FILE,
            EntryKind.USER,
            EntryKind.ASSISTANT,
        ]
        assert [item.body["role"] for item in await items_of(house, first.conversation_id)] == ["user", "assistant"]


@BOTH
async def test_a_reminder_counts_to_what_a_request_may_take(placement: str) -> None:
    async with agents_house(answer("One."), answer("Two.")) as (house, _):
        sizes = dict[int, int]()
        for length in (1, 4_000):
            await put_agent(house, f"agent{length}", placement=placement, reminder="r" * length)
            await house.ask(input="U1", model=f"agent{length}")
            sizes[length] = count_fixed_tokens(house.sent[-1], keeps_context=True)
        assert sizes[4_000] - sizes[1] > 900
