"""A client that resends its history is recognised by it, and by nothing else."""

import asyncio
from typing import Any

import pytest

from backend.conversations.domain.responses import ResponseStatus
from shared.errors import InvalidRequest, TurnRunning
from shared.models.events import FinishReason
from shared.models.messages import SystemMessage
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import ADA, BOB, open_house
from tests.unit.backend.conversations.samples import binding, parse_items
from tests.unit.backend.turns.asking import SUFFIX, WEATHER, ask, said, texts, user


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


async def test_a_resent_history_continues_as_the_newest_response_does() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Three.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One."), user("B"))
        third = await ask(house, user("A"), said("One."), user("B"), said("Two."), user("C"))
        assert first.conversation_id == second.conversation_id == third.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One.", f"B{SUFFIX}", "Two."]
        assert [(one.epoch, one.cache_key) for one in house.sent] == [(0, house.sent[0].cache_key)] * 3
        assert [item["role"] for item in third.input_items] == ["user"]
        assert len(house.state.items[first.conversation_id]) == 6
        assert third.body["previous_response_id"] is None


async def test_what_clients_write_otherwise_does_not_count() -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, user("A"))
        parts = [{"type": "input_text", "text": "A"}]
        shown = {"type": "output_text", "text": "One.", "annotations": [{"type": "url_citation"}], "logprobs": []}
        second = await ask(
            house,
            {"type": "message", "id": "msg_foreign", "role": "user", "content": parts, "status": "completed"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "status": "completed"},
            {"type": "message", "role": "assistant", "phase": "final_answer", "content": [shown]},
            user("B"),
        )
        assert second.conversation_id == first.conversation_id


@pytest.mark.parametrize("changed", ["one.", "O ne.", "One", "", "One.\n\n."])
async def test_other_text_is_no_answer_of_ours(changed: str) -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said(changed), user("B"))
        assert second.conversation_id != first.conversation_id
        assert texts(house) == ["A", changed]


async def test_an_edited_message_branches_off_where_the_histories_part() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Other.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One."), user("B"))
        edited = await ask(house, user("A"), said("One."), user("B!"))
        assert edited.conversation_id != first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One."]
        assert house.sent[2].cache_key == house.sent[0].cache_key
        deeper = await ask(house, user("A"), said("One."), user("B"), said("I said otherwise."), user("C"))
        assert texts(house) == [f"A{SUFFIX}", "One.", "B", "I said otherwise."]
        assert len({deeper.conversation_id, edited.conversation_id, second.conversation_id}) == 3
        again = await ask(house, user("A"), said("One."), user("B!"), said("Other."), user("D"))
        assert again.conversation_id == edited.conversation_id


async def test_a_question_before_a_system_message_is_sent_and_resent_with_its_time_and_context() -> None:
    async with open_house(answer("One.")) as house:
        await house.knowledge.create_base(binding("kb_1", tenant=ADA.tenant).base, ADA.user_id)
        tools = [{"type": "file_search", "vector_store_ids": ["kb_1"]}]
        first = await ask(house, user("A"), system("Be brief."), tools=tools)
        context, *rest = texts(house)
        assert house.sent[0].kb_meta_prompt == "" != context
        assert rest == [f"A{SUFFIX}", "Be brief."]
        second = await ask(house, user("A"), system("Be brief."), said("One."), user("B"), tools=tools)
        assert second.conversation_id == first.conversation_id
        assert texts(house)[:3] == [context, *rest]


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("items", [[system("Rhyme.")], [said("One.")], [user("A"), said("One.")]])
async def test_a_turn_needs_no_message_of_the_user_at_its_end(items: list[dict[str, Any]], store: bool) -> None:
    async with open_house(answer("Two.")) as house:
        response = await ask(house, *items, store=store)
        assert response.status is ResponseStatus.COMPLETED
        assert house.sent[0].prompt is None
        assert texts(house) == [str(item["content"]) for item in items if item["role"] != "system"]


async def test_the_outputs_of_calls_continue_their_turn() -> None:
    async with open_house(function_calls("call_1", "call_2", text="Looking."), answer("Rain.")) as house:
        asked = [user("Weather?"), said("Looking.")]
        calls = [
            {"type": "function_call", "call_id": f"call_{n}", "name": "weather", "arguments": "{}"} for n in (1, 2)
        ]
        outputs = [{"type": "function_call_output", "call_id": f"call_{n}", "output": "wet"} for n in (2, 1)]
        first = await ask(house, user("Weather?"), tools=[WEATHER])
        second = await ask(house, *asked, *calls, *outputs)
        assert second.conversation_id == first.conversation_id
        assert [message.role for message in house.sent[1].history] == ["user", "assistant", "tool", "tool"]
        third = await ask(house, *asked, *calls, *outputs, said("Rain."), user("And now?"))
        assert third.conversation_id == first.conversation_id
        other = [{**calls[0], "arguments": '{"at": "sea"}'}, calls[1]]
        fourth = await ask(house, *asked, *other, *outputs)
        assert fourth.conversation_id != first.conversation_id


async def test_leading_instructions_do_not_count_but_begin_an_epoch_where_they_are_others() -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, system("Be kind."), user("A"))
        await ask(house, system("Be kind."), user("A"), said("One."), user("B"))
        assert house.sent[1].epoch == 0
        third = await ask(house, system("Be brief."), user("A"), said("One."), user("B"), said("Hello."), user("C"))
        assert (third.conversation_id, house.sent[2].epoch) == (first.conversation_id, 1)
        assert house.sent[2].system_prompt.startswith("Be brief.")


async def test_a_system_message_inside_the_history_is_sent_where_it_stands_and_counts() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await ask(house, user("A"))
        dated = [user("A"), said("One."), {"role": "developer", "content": "It is night."}, user("B")]
        second = await ask(house, *dated)
        third = await ask(house, *dated, said("Two."), user("C"))
        assert first.conversation_id == second.conversation_id == third.conversation_id
        assert house.sent[2].history[2] == SystemMessage(content="It is night.")
        without = await ask(house, user("A"), said("One."), user("B"), said("Two."), user("C"))
        assert without.conversation_id != first.conversation_id


async def test_another_user_or_tenant_is_a_stranger_with_the_same_words() -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, user("A"))
        for stranger in (BOB, ADA.model_copy(update={"tenant": "elsewhere"})):
            other = await ask(house, user("A"), said("One."), user("B"), caller=stranger)
            assert other.conversation_id != first.conversation_id
            assert texts(house) == ["A", "One."]


async def test_what_a_recognised_request_leaves_out_is_as_in_a_new_conversation() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Three.")) as house:
        first = await ask(house, user("A"), tools=[WEATHER], instructions="Be kind.")
        second = await ask(house, user("A"), said("One."), user("B"))
        assert second.conversation_id == first.conversation_id
        assert (house.sent[1].tools, second.body["instructions"], second.body["tools"]) == ((), None, [])
        assert house.sent[1].system_prompt != house.sent[0].system_prompt
        assert house.observer.epochs == [(0, "new_conversation"), (1, "tools_changed")]
        assert texts(house) == [f"A{SUFFIX}", "One."]
        with pytest.raises(InvalidRequest) as caught:
            await ask(house, user("A"), said("One."), user("B"), tool_choice="required")
        assert caught.value.param == "tool_choice"
        resumed = await house.ask(input="C", conversation=first.conversation_id)
        assert resumed.body["tools"] == []


async def test_of_equal_histories_the_latest_with_equal_settings_goes_on() -> None:
    kinds: list[dict[str, Any]] = [{}, {"tools": [WEATHER]}, {"instructions": "Be kind."}, {"tools": [WEATHER]}]
    async with open_house(*[answer("One.")] * 4) as house:
        firsts = [await ask(house, user("A"), **kind) for kind in kinds]
        for kind, place in [({}, 0), (kinds[1], 3), (kinds[2], 2)]:
            resent = await ask(house, user("A"), said("One."), user("B"), **kind)
            assert (resent.conversation_id, house.sent[-1].epoch) == (firsts[place].conversation_id, 0)
        other = await ask(house, user("A"), said("One."), user("B"), instructions="Be brief.")
        assert other.conversation_id not in {one.conversation_id for one in firsts}
        assert (house.sent[-1].epoch, house.sent[-1].cache_key) == (1, house.sent[3].cache_key)


async def test_of_equal_histories_that_with_the_same_model_goes_on() -> None:
    async with open_house(answer("One."), answer("One.")) as house:
        large, _ = [await ask(house, user("A"), model=model) for model in ("vendor/large", "demo-model")]
        resent = await ask(house, user("A"), said("One."), user("B"), model="vendor/large")
        assert (resent.conversation_id, house.sent[-1].epoch) == (large.conversation_id, 0)
        other = await ask(house, user("A"), said("One."), user("B"), said("Hello."), user("C"))
        assert (other.conversation_id, other.body["model"]) == (large.conversation_id, "demo-model")
        assert house.observer.epochs[-1] == (1, "model_changed")


async def test_of_equal_histories_that_with_the_same_bases_goes_on() -> None:
    async with open_house(*[answer("One.")] * 3) as house:
        for base_id in ("kb_a", "kb_b"):
            await house.knowledge.create_base(binding(base_id, tenant=ADA.tenant).base, ADA.user_id)
        bound = [{"tools": [{"type": "file_search", "vector_store_ids": [each]}]} for each in ("kb_a", "kb_b")]
        firsts = [await ask(house, user("A"), **kind) for kind in bound]
        resent = await ask(house, user("A"), said("One."), user("B"), **bound[0])
        assert resent.conversation_id == firsts[0].conversation_id
        again = await ask(house, user("A"), said("One."), user("B"), **bound[0])
        assert again.conversation_id not in {one.conversation_id for one in firsts}
        assert [ref.id for ref in house.sent[-1].knowledge.bases] == ["kb_a"]
        unbound = await ask(house, user("A"), said("One."), user("B"))
        assert unbound.conversation_id == firsts[1].conversation_id
        assert (house.sent[-1].epoch, house.sent[-1].knowledge.bases) == (0, ())


async def test_of_equal_histories_the_latest_goes_on() -> None:
    async with open_house(answer("One."), answer("One.")) as house:
        await ask(house, user("A"))
        latest = await ask(house, user("A"))
        third = await ask(house, user("A"), said("One."), user("B"))
        assert third.conversation_id == latest.conversation_id


async def test_unstored_turns_with_one_opening_share_the_cache_of_a_provider() -> None:
    async with open_house(*[answer("One.")] * 6) as house:
        await ask(house, user("A"), store=False)
        await ask(house, user("A"), said("One."), user("B"), store=False)
        await house.ask(input="A", store=False)
        await ask(house, user("B"), store=False)
        await ask(house, user("A"), store=False, caller=BOB)
        await ask(house, user("A"))
        keys = [sent.cache_key for sent in house.sent]
        assert keys[0] == keys[1] == keys[2]
        assert len(set(keys)) == 4
        assert len({sent.conversation_id for sent in house.sent}) == 6


async def test_what_is_not_stored_is_neither_found_nor_looked_for() -> None:
    async with open_house(answer("One."), answer("One."), answer("Two."), answer("Two.")) as house:
        await ask(house, user("A"), store=False)
        second = await ask(house, user("A"), said("One."), user("B"), store=False)
        assert texts(house) == ["A", "One."]
        stored = await ask(house, user("A"), said("One."), user("B"))
        assert texts(house) == ["A", "One."]
        assert stored.conversation_id != second.conversation_id
        await ask(house, user("A"), said("One."), user("B"), said("Two."), user("C"), store=False)
        assert texts(house) == ["A", "One.", "B", "Two."]


async def test_a_turn_that_failed_is_no_part_of_what_was_seen() -> None:
    async with open_house(answer("One."), [RuntimeError("gone")], answer("Two.")) as house:
        first = await ask(house, user("A"))
        failed = await ask(house, user("A"), said("One."), user("B"))
        assert (failed.status, failed.conversation_id) == (ResponseStatus.FAILED, first.conversation_id)
        again = await ask(house, user("A"), said("One."), user("B"))
        assert again.conversation_id != first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One."]
        behind = await house.ask(input="C", conversation=first.conversation_id)
        assert behind.seen is None


async def test_an_answer_that_was_cut_is_not_recognised_and_one_at_a_limit_is() -> None:
    cut = answer("Half", finish_reason=FinishReason.CONTENT_FILTER)
    limited = answer("Long", finish_reason=FinishReason.LENGTH)
    async with open_house(cut, answer("x"), limited) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("Half"), user("B"))
        assert second.conversation_id != first.conversation_id
        third = await ask(house, user("C"))
        fourth = await ask(house, user("C"), said("Long"), user("D"))
        assert fourth.conversation_id == third.conversation_id


async def test_while_a_turn_runs_the_same_history_branches_off() -> None:
    gate = asyncio.Event()
    async with open_house(answer("One."), [gate, *answer("Two.")], answer("Other.")) as house:
        first = await ask(house, user("A"))
        running = await house.start(input=[user("A"), said("One."), user("B")])
        assert running.response.conversation_id == first.conversation_id
        beside = await ask(house, user("A"), said("One."), user("B"))
        assert beside.conversation_id != first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One."]
        with pytest.raises(TurnRunning):
            await house.start(conversation=first.conversation_id)
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"


async def test_two_at_once_both_run() -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, user("A"))
        resent = [user("A"), said("One."), user("B")]
        both = await asyncio.gather(ask(house, *resent), ask(house, *resent))
        assert [one.status for one in both] == ["completed", "completed"]
        assert {one.conversation_id for one in both} > {first.conversation_id}
        assert house.sent[1].history == house.sent[2].history


async def test_items_that_the_client_did_not_resend_are_left_behind() -> None:
    async with open_house(answer("One.")) as house:
        first = await ask(house, user("A"))
        conversations = house.caller_conversations
        given = parse_items([user("Aside"), said("Noted")], "items")
        await conversations.add_items(ADA, first.conversation_id, given)
        second = await ask(house, user("A"), said("One."), user("B"))
        assert second.conversation_id != first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One."]
        await house.ask(input="B", conversation=first.conversation_id)
        third = await ask(
            house, user("A"), said("One."), user("Aside"), said("Noted"), user("B"), said("Hello."), user("C")
        )
        assert third.conversation_id == first.conversation_id


async def test_a_deleted_conversation_or_response_is_forgotten() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One."), user("B"))
        await house.services.responses.delete(ADA, second.id)
        third = await ask(house, user("A"), said("One."), user("B"), said("Two."), user("C"))
        assert texts(house) == [f"A{SUFFIX}", "One.", "B", "Two."]
        assert third.conversation_id != first.conversation_id
        await house.caller_conversations.delete(ADA, first.conversation_id)
        fourth = await ask(house, user("A"), said("One."), user("D"))
        assert texts(house) == ["A", "One."]
        assert fourth.conversation_id not in (first.conversation_id, third.conversation_id)


async def test_a_bad_item_is_named_by_its_place_in_the_whole_list() -> None:
    async with open_house(answer("One.")) as house:
        await ask(house, user("A"))
        orphan = {"type": "function_call_output", "call_id": "call_9", "output": "x"}
        with pytest.raises(InvalidRequest) as caught:
            await ask(house, user("A"), said("One."), orphan)
        assert caught.value.param == "input[2].call_id"
