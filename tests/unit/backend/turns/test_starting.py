"""What a turn is started with: origin, settings, knowledge, and what is stored before anything is sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import EntryKind, messages_of
from backend.foundation.services.admission import Admission
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.knowledge.domain.tickets import SearchOptions, verify_ticket
from backend.turns.ports.dynamic_blocks import TurnFacts
from shared.errors import Draining, InvalidRequest, NotFound, TooManyRequests, TurnRunning, Unavailable, UnknownModel
from shared.models.execution import AccessMode, DynamicBlock, NamedToolChoice, ReasoningEffort
from shared.models.messages import AssistantMessage, TextPart, ToolMessage, UserMessage
from shared.prompts.knowledge_base import KNOWLEDGE_SECTION
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, BOB, SECRET, open_house
from tests.fakes.probe import FakePresence
from tests.fakes.store_knowledge import FakeKnowledge
from tests.unit.backend.turns.asking import SUFFIX, add_base, searching

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
TIDES = {"type": "function", "name": "tides"}


async def test_the_first_request_is_stored_before_it_is_sent() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("Hello.")]) as house:
        running = await house.start(input="Hi", instructions="Be kind.")
        conversation = house.state.conversations[running.response.conversation_id]
        assert conversation.running_response_id == running.response.id
        entries = house.log_of(conversation.id)
        assert [(entry.kind, entry.message) for entry in entries] == [
            (EntryKind.USER, UserMessage(content=f"Hi{SUFFIX}"))
        ]
        gate.set()
        await running.wait_until_ended()


async def test_without_an_event_store_no_turn_begins_and_running_ones_go_on() -> None:
    gate, event_store = asyncio.Event(), FakePresence()
    async with open_house([gate, *answer("Hello.")], admission=Admission(event_store)) as house:
        running = await house.start()
        event_store.is_away = True
        with pytest.raises(Unavailable) as caught:
            await house.start()
        assert (caught.value.retry_after_seconds, list(house.state.responses)) == (1, [running.response.id])
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"
        event_store.is_away = False
        assert (await house.ask()).status == "completed"


async def test_one_caller_never_takes_all_places_and_gets_theirs_back_when_a_turn_ends_or_does_not_begin() -> None:
    gate = asyncio.Event()
    scripts = ([gate, *answer("Hello.")], [gate, *answer("Hello.")], answer("Hello."))
    async with open_house(*scripts, admission=Admission(max_turns=2)) as house:
        running = await house.start()
        with pytest.raises(TooManyRequests) as caught:
            await house.start()
        assert caught.value.retry_after_seconds == 1
        other = await house.start(BOB)
        gate.set()
        assert (await running.wait_until_ended()).status == (await other.wait_until_ended()).status == "completed"
        with pytest.raises(NotFound):
            await house.start(conversation="conv_0")
        assert (await house.ask()).status == "completed"


async def test_the_request_carries_the_message_without_its_suffix() -> None:
    async with open_house() as house:
        await house.ask(input="Hi", instructions="Be kind.", temperature=0.5, reasoning={"effort": "low"})
        sent = house.sent[0]
        assert (sent.prompt, sent.history, sent.kb_meta_prompt) == ("Hi", (), "")
        assert sent.system_prompt == f"Be kind.\n\n{KNOWLEDGE_SECTION}"
        assert sent.parameters.temperature == 0.5
        assert sent.parameters.reasoning_effort is ReasoningEffort.LOW
        assert (sent.model, sent.epoch, sent.time_zone) == ("demo-model", 0, "Europe/Berlin")
        assert (sent.deadline - sent.sent_at).total_seconds() == 600


async def test_without_instructions_the_system_message_is_the_static_section() -> None:
    async with open_house() as house:
        await house.ask()
        assert house.sent[0].system_prompt == KNOWLEDGE_SECTION


async def test_the_newest_response_continues_its_conversation() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await house.ask(input="A")
        second = await house.ask(input="B", previous_response_id=first.id)
        assert second.conversation_id == first.conversation_id
        assert house.sent[1].history == (
            UserMessage(content=f"A{SUFFIX}"),
            AssistantMessage(text="One."),
        )
        assert [entry.position for entry in house.log_of(first.conversation_id)] == [0, 1, 2, 3]
        assert second.body["previous_response_id"] == first.id


async def test_a_conversation_continues_by_id_or_object() -> None:
    async with open_house() as house:
        first = await house.ask()
        await house.ask(conversation=first.conversation_id)
        third = await house.ask(conversation={"id": first.conversation_id})
        assert third.body["conversation"] == {"id": first.conversation_id}
        assert len(house.sent[2].history) == 4
        items = house.state.items[first.conversation_id]
        assert [item.sequence for item in items] == list(range(6))


async def test_an_older_response_forks_with_the_same_bytes_and_the_same_cache_key() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Other.")) as house:
        first = await house.ask(input="A", instructions="Be kind.", tools=[WEATHER])
        await house.ask(input="B", previous_response_id=first.id, instructions="Be brief.", model="vendor/large")
        fork = await house.ask(input="C", previous_response_id=first.id)
        assert fork.conversation_id != first.conversation_id
        sent = house.sent
        assert sent[2].history == (UserMessage(content=f"A{SUFFIX}"), AssistantMessage(text="One."))
        assert (sent[2].epoch, sent[2].model, sent[2].tools) == (0, "demo-model", sent[0].tools)
        assert sent[2].system_prompt == sent[0].system_prompt
        assert sent[2].cache_key == sent[0].cache_key
        assert house.log_of(fork.conversation_id)[:2] == house.log_of(first.conversation_id)[:2]
        assert [item.sequence for item in house.state.items[fork.conversation_id]] == [0, 1, 2, 3]


async def test_a_fork_of_a_fork_keeps_going() -> None:
    async with open_house() as house:
        first = await house.ask(input="A")
        await house.ask(input="B", previous_response_id=first.id)
        fork = await house.ask(input="C", previous_response_id=first.id)
        last = await house.ask(input="D", previous_response_id=fork.id)
        assert last.conversation_id == fork.conversation_id
        assert [entry.position for entry in house.log_of(fork.conversation_id)] == list(range(6))


async def test_cache_keys_differ_between_conversations_and_show_no_id() -> None:
    async with open_house() as house:
        first = await house.ask()
        await house.ask()
        keys = [request.cache_key for request in house.sent]
        assert keys[0] != keys[1]
        assert first.conversation_id.removeprefix("conv_") not in keys[0]


async def test_a_running_response_cannot_be_continued() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("x")]) as house:
        running = await house.start()
        origins: list[dict[str, Any]] = [
            {"previous_response_id": running.response.id},
            {"conversation": running.response.conversation_id},
        ]
        for fields in origins:
            with pytest.raises(TurnRunning):
                await house.start(**fields)
        gate.set()


async def test_of_two_turns_at_once_one_wins() -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask()
        outcomes = await asyncio.gather(
            *(house.start(conversation=first.conversation_id) for _ in range(2)), return_exceptions=True
        )
        assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 1


async def test_what_belongs_to_somebody_else_is_not_there() -> None:
    async with open_house() as house:
        mine = await house.ask(ADA)
        for name, value in (("previous_response_id", mine.id), ("conversation", mine.conversation_id)):
            fields: dict[str, Any] = {name: value}
            with pytest.raises(NotFound) as caught:
                await house.start(BOB, **fields)
            assert caught.value.param == name


async def test_instructions_left_out_stay_and_changed_ones_start_an_epoch() -> None:
    async with open_house() as house:
        first = await house.ask(instructions="Be kind.")
        await house.ask(conversation=first.conversation_id)
        await house.ask(conversation=first.conversation_id, instructions="Be brief.")
        sent = house.sent
        assert [request.epoch for request in sent] == [0, 0, 1]
        assert sent[1].system_prompt == sent[0].system_prompt
        assert house.observer.epochs == [(0, "new_conversation"), (1, "instructions_changed")]


async def test_leading_system_items_join_the_instructions() -> None:
    items = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi"},
    ]
    async with open_house() as house:
        response = await house.ask(input=items, instructions="Be there.")
        assert house.sent[0].system_prompt.startswith("Be there.\n\nBe kind.\n\nBe brief.\n\n")
        assert response.body["instructions"] == "Be there.\n\nBe kind.\n\nBe brief."
        assert len(response.input_items) == 3


async def test_tools_given_are_the_whole_truth_and_left_out_they_stay() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1")
        first = await house.ask(tools=[WEATHER, TIDES, searching("kb_1")])
        kept = await house.ask(conversation=first.conversation_id)
        await house.ask(conversation=first.conversation_id, tools=[TIDES, WEATHER])
        await house.ask(conversation=first.conversation_id, tools=[])
        sent = house.sent
        assert [[tool.name for tool in request.tools] for request in sent] == [
            ["tides", "weather"],
            ["tides", "weather"],
            ["tides", "weather"],
            [],
        ]
        assert [len(request.knowledge.bases) for request in sent] == [1, 1, 0, 0]
        assert [request.epoch for request in sent] == [0, 0, 0, 1]
        assert house.observer.epochs[-1] == (1, "tools_changed")
        assert [tool["type"] for tool in at(kept.body, "tools")] == ["function", "function", "file_search"]


async def test_the_model_is_kept_and_a_change_starts_an_epoch() -> None:
    async with open_house() as house:
        first = await house.ask(model="vendor/large")
        await house.ask(conversation=first.conversation_id)
        await house.ask(conversation=first.conversation_id, model="demo-model")
        assert [request.model for request in house.sent] == ["vendor/large"] * 2 + ["demo-model"]
        assert house.observer.epochs[-1] == (1, "model_changed")


async def test_an_unknown_model_is_not_found_and_nothing_is_stored() -> None:
    async with open_house() as house:
        with pytest.raises(UnknownModel) as caught:
            await house.start(model="gpt-none")
        assert caught.value.param == "model"
        assert house.state.conversations == {}


async def test_bound_bases_bring_metadata_and_a_ticket() -> None:
    async with open_house() as house:
        await add_base(house, "kb_2", MemberRole.READER)
        await add_base(house, "kb_1", MemberRole.READER)
        response = await house.ask(tools=[searching("kb_2", "kb_1")])
        sent = house.sent[0]
        assert [base.id for base in sent.knowledge.bases] == ["kb_1", "kb_2"]
        assert sent.knowledge.access_mode is AccessMode.FULL
        assert "Handbook kb_1" in sent.kb_meta_prompt
        assert "Handbook" not in sent.system_prompt
        ticket = verify_ticket(sent.knowledge.ticket, SECRET, house.clock.now())
        assert (ticket.user_id, ticket.turn_id, ticket.base_ids) == ("ada", response.id, ("kb_1", "kb_2"))
        assert ticket.expires_at == sent.deadline
        context, current, answer = house.log_of(response.conversation_id)
        assert context.message == UserMessage(content=sent.kb_meta_prompt), "it is logged as it is sent"
        assert [entry.kind for entry in (context, current, answer)] == ["dynamic_context", "user", "assistant"]


async def test_the_bounds_of_a_search_stay_as_long_as_the_binding() -> None:
    bounds = {"max_num_results": 3, "ranking_options": {"ranker": "auto", "score_threshold": 0.5}}
    async with open_house() as house:
        await add_base(house, "kb_1", MemberRole.READER)
        first = await house.ask(tools=[searching("kb_1") | bounds])
        kept = await house.ask(previous_response_id=first.id)
        changed = await house.ask(previous_response_id=kept.id, tools=[searching("kb_1")])
        forked = await house.ask(previous_response_id=first.id)
        for response, request, search in zip(
            (first, kept, changed, forked),
            house.sent,
            (SearchOptions(max_results=3, min_score=0.5),) * 2
            + (SearchOptions(), SearchOptions(max_results=3, min_score=0.5)),
            strict=True,
        ):
            assert verify_ticket(request.knowledge.ticket, SECRET, house.clock.now()).search == search
            (tool,) = at(response.body, "tools")
            assert tool == searching("kb_1") | (bounds if search.is_bounded else {})


async def test_one_restricted_base_restricts_the_turn() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1", MemberRole.RESTRICTED_ANALYST)
        await house.ask(tools=[searching("kb_1")])
        assert house.sent[0].knowledge.access_mode is AccessMode.RESTRICTED


async def test_a_base_of_others_is_not_found_at_its_place() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1")
        with pytest.raises(NotFound) as caught:
            await house.start(tools=[WEATHER, searching("kb_1", "kb_9")])
        assert caught.value.param == "tools[1].vector_store_ids[1]"


async def test_a_kept_base_that_is_gone_is_left_out() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1")
        first = await house.ask(tools=[searching("kb_1")])
        await house.knowledge.delete_base("kb_1")
        await house.ask(conversation=first.conversation_id)
        assert house.sent[1].knowledge.bases == ()


async def test_tool_choices_name_functions_and_the_search() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1")
        await house.ask(tools=[WEATHER], tool_choice={"type": "function", "name": "weather"})
        await house.ask(tools=[searching("kb_1")], tool_choice={"type": "file_search"})
        choices = [request.parameters.tool_choice for request in house.sent]
        assert choices == [NamedToolChoice(name="weather"), NamedToolChoice(name="knowledge_base_search")]
        for choice in ({"type": "function", "name": "tides"}, {"type": "file_search"}):
            with pytest.raises(InvalidRequest):
                await house.start(tools=[WEATHER], tool_choice=choice)


async def test_a_demand_for_a_tool_needs_one() -> None:
    async with open_house() as house:
        await add_base(house, "kb_1")
        with pytest.raises(InvalidRequest) as caught:
            await house.start(tool_choice="required")
        assert caught.value.param == "tool_choice"
        bound = await house.ask(tools=[searching("kb_1")], tool_choice="required")
        await house.ask(tool_choice="required", conversation=bound.conversation_id)
        with pytest.raises(InvalidRequest):
            await house.start(tool_choice="required", conversation=bound.conversation_id, tools=[])
        await house.ask(tools=[WEATHER], tool_choice="required")


async def test_outputs_alone_continue_with_no_message_and_no_context() -> None:
    async with open_house(function_calls("c1", "c2"), answer("Rain.")) as house:
        await add_base(house, "kb_1")
        first = await house.ask(tools=[WEATHER, searching("kb_1")])
        outputs = [
            {"type": "function_call_output", "call_id": "c2", "output": "wet"},
            {"type": "function_call_output", "call_id": "c1", "output": "dry"},
        ]
        await house.ask(conversation=first.conversation_id, input=outputs)
        sent = house.sent[1]
        assert (sent.prompt, sent.kb_meta_prompt, sent.dynamic_blocks) == (None, "", ())
        assert sent.history[-2:] == (
            ToolMessage(call_id="c1", content="dry"),
            ToolMessage(call_id="c2", content="wet"),
        )
        kinds = [entry.kind for entry in house.log_of(first.conversation_id)]
        results = [EntryKind.TOOL_RESULT] * 2
        first_turn = [EntryKind.DYNAMIC_CONTEXT, EntryKind.USER, EntryKind.ASSISTANT]
        assert kinds == [*first_turn, *results, EntryKind.ASSISTANT]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ("Hello?", "input"),
        ([{"role": "user", "content": "Hello?"}], "input[0]"),
        ([{"type": "function_call_output", "call_id": "c9", "output": ""}], "input[0].call_id"),
        ([{"type": "function_call_output", "call_id": "c1", "output": ""}], "input"),
    ],
)
async def test_pending_calls_want_all_their_outputs(given: object, param: str) -> None:
    async with open_house(function_calls("c1", "c2")) as house:
        first = await house.ask(tools=[WEATHER])
        with pytest.raises(InvalidRequest) as caught:
            await house.start(conversation=first.conversation_id, input=given)
        assert caught.value.param == param


async def test_history_in_a_list_is_logged_as_given() -> None:
    items = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Two"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Three"}]},
    ]
    async with open_house() as house:
        response = await house.ask(input=items)
        sent = house.sent[0]
        assert sent.history == (UserMessage(content="One"), AssistantMessage(text="Two"))
        log = house.log_of(response.conversation_id)
        assert [entry.kind for entry in log[:3]] == [EntryKind.USER, EntryKind.ASSISTANT, EntryKind.USER]
        assert isinstance(log[2].message, UserMessage)
        assert log[2].message.content == (TextPart(text="Three"), TextPart(text=SUFFIX))


async def test_blocks_of_the_deployment_follow_the_metadata() -> None:
    async with open_house(blocks=(GivenBlock("One"), GivenBlock(" "), GivenBlock(None), GivenBlock("Two"))) as house:
        await house.ask()
        assert [block.text for block in house.sent[0].dynamic_blocks] == ["One", "Two"]


async def test_a_block_that_fails_fails_the_turn_before_anything_is_stored() -> None:
    async with open_house(blocks=(BrokenBlock(),)) as house:
        with pytest.raises(Unavailable):
            await house.start()
        assert house.state.conversations == {}
        assert house.sent == []
        assert isinstance(house.observer.broken[0], ZeroDivisionError)


async def test_a_knowledge_store_that_is_down_fails_the_turn_before_anything_is_stored_and_the_retry_delivers() -> None:
    class Away(FakeKnowledge):
        is_away = False

        async def bindings(self, tenant: str, user_id: str, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
            if Away.is_away:
                raise Unavailable("The database cannot be reached.")
            return await super().bindings(tenant, user_id, base_ids)

    async with open_house(knowledge=Away()) as house:
        await add_base(house, "kb_a", MemberRole.READER)
        first = await house.ask(input="One?", tools=[searching("kb_a")])
        before = list(house.log_of(first.conversation_id))
        Away.is_away = True
        with pytest.raises(Unavailable):
            await house.start(input="Two?", conversation=first.conversation_id)
        assert house.log_of(first.conversation_id) == before
        assert len(house.sent) == 1
        Away.is_away = False
        second = await house.ask(input="Two?", conversation=first.conversation_id)
        assert second.status == "completed"
        assert house.sent[1].history[: len(before)] == messages_of(before)


async def test_a_process_that_drains_takes_no_turn() -> None:
    async with open_house() as house:
        house.admission.close()
        with pytest.raises(Draining):
            await house.start()


async def test_a_turn_not_stored_leaves_nothing_behind() -> None:
    async with open_house() as house:
        first = await house.ask(input="A")
        before = house.state.conversations[first.conversation_id]
        ended = await house.ask(input="B", store=False, previous_response_id=first.id)
        assert house.sent[1].history[0] == UserMessage(content=f"A{SUFFIX}")
        assert at(ended.body, "output", 0, "content", 0, "text") == "Hello."
        assert (ended.body["store"], ended.body["conversation"]) == (False, None)
        assert house.state.conversations == {first.conversation_id: before}
        assert list(house.state.responses) == [first.id]
        assert not await house.events.exists(ended.id)


class GivenBlock:
    """A block with this text."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        return DynamicBlock(name=f"given {self._text}", text=self._text) if self._text is not None else None


class BrokenBlock:
    """A plug-in with a defect."""

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        raise ZeroDivisionError
