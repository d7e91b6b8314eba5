"""What becomes of conversations that outgrow their model's window: summaries, elision, and that nothing drifts."""

from typing import Any

import pytest

from backend.conversations.domain.conversation_log import EntryKind, history
from shared.errors import ChatShellUnavailable, ContextTooLong, DeadlineExceeded
from shared.models.error_reports import report_of
from shared.models.events import ExecutionEvent, ModelCallStarted, RefusalDelta, TurnFailed, Usage
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, ToolMessage, UserMessage
from shared.models.values import objects_in
from shared.prompts.attached_files import LEFT_OUT
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.prompts.summary import COMPACTED, SUMMARY_INSTRUCTION, frame_summary
from tests.fakes.attached_files import FakeText
from tests.fakes.chat_shell_talking import (
    LONG,
    Talk,
    answered,
    asked_until_compacted,
    facts_in,
    items_of,
    shell_of,
    talking,
    whole_prompt,
)
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA
from tests.fakes.openai_types import check_item, check_response
from tests.fakes.replicas import check_events
from tests.unit.backend.turns.attaching import files_in, part, stored, user
from tests.unit.backend.turns.placing import put_agent


async def test_what_is_left_out_is_summarised_with_the_same_prefix_and_stands_first() -> None:
    async with talking() as house:
        last = await asked_until_compacted(house)
        shell = shell_of(house)
        (summary,) = shell.summaries
        before, after = shell.answers[-2:]
        sent = [*whole_prompt(before), AssistantMessage(text="Well.")]
        asked = list(whole_prompt(summary))
        assert asked[-1] == UserMessage(content=SUMMARY_INSTRUCTION)
        assert asked[:-1] == sent[: len(asked) - 1]
        assert (summary.system_prompt, summary.tools, summary.model) == (
            before.system_prompt,
            before.tools,
            before.model,
        )
        assert (summary.cache_key, summary.added) == (before.cache_key, ())
        kept = after.history[1:]
        assert after.history[0] == UserMessage(content=frame_summary(" ".join(facts_in(summary.history))))
        assert [*asked[:-1], *kept] == sent
        assert facts_in(whole_prompt(after)) == [f"FACT-a{number}" for number in range(len(shell.answers))]
        assert house.observer.compactions == ["summarised"]
        assert house.observer.epochs == [(0, "new_conversation"), (1, "compaction")]
        assert house.observer.drifts == []
        assert items_of(last) == ["compaction", "message"]
        check_response(last.body)
        for item in objects_in(last.body["output"]):
            check_item(item)
        await check_events(house, last)


async def test_the_summary_counts_to_the_usage_and_is_shown_among_the_prompts() -> None:
    async with talking() as house:
        last = await asked_until_compacted(house)
        calls = await house.turns.model_calls(last.id)
        assert [(call.call, call.summary_of is not None) for call in calls] == [(1, True), (2, False)]
        assert at(last.body, "usage", "input_tokens") == sum(
            call.usage.input_tokens or 0 for call in calls if call.usage
        )
        shown = await house.read_prompts(ADA, last.id)
        assert [call["purpose"] for call in shown] == ["summary", "answer"]
        for call, request in zip(shown, shell_of(house).requests[-2:], strict=True):
            sent = [message.content for message in whole_prompt(request) if not isinstance(message, AssistantMessage)]
            assert [m["content"] for m in objects_in(call["messages"]) if m["role"] != "assistant"] == sent
            gauge = call["gauge"]
            assert isinstance(gauge, dict)
            assert (gauge["window_tokens"], gauge["reserved_tokens"]) == (8_000, 1_000)
            assert 0 < int(str(gauge["used_tokens"])) < 7_000
        assert at(shown[0], "messages", -1, "kind") == "summary_instruction"
        assert [m["kind"] for m in objects_in(shown[1]["messages"])][:2] == ["system", "summary"]
        assert (at(shown[1], "epoch_reason"), shown[1]["first_difference"]) == ("compaction", "messages[1].content")


async def test_the_turns_behind_extend_what_was_sent() -> None:
    async with talking() as house:
        last = await asked_until_compacted(house)
        compacted = shell_of(house).answers[-1]
        await house.ask(input="And now?", previous_response_id=last.id)
        after = shell_of(house).answers[-1]
        expected = (*whole_prompt(compacted), AssistantMessage(text="Well."))
        assert whole_prompt(after)[: len(expected)] == expected
        assert len(house.observer.compactions) == 1
        assert house.observer.drifts == []


def refused(request: ExecutionRequest) -> list[ExecutionEvent]:
    said = answered(request, "")
    return [said[0], RefusalDelta(text="No."), *said[2:3], *said[4:]]


def timed_out(_request: ExecutionRequest) -> list[ExecutionEvent]:
    return [ModelCallStarted(call=1), TurnFailed(error=report_of(DeadlineExceeded("Late.")), usage=Usage())]


FAILURES: dict[str, Talk] = {
    "failed": lambda _: ChatShellUnavailable("Gone."),
    "empty": lambda request: answered(request, " \n"),
    "refused": refused,
    "timed_out": timed_out,
    "too_long": lambda request: answered(request, "word " * 20_000),
}


@pytest.mark.parametrize("outcome", FAILURES)
async def test_without_a_summary_the_turn_goes_on_with_a_notice(outcome: str) -> None:
    def talk(request: ExecutionRequest) -> Any:
        return FAILURES[outcome](request) if request.purpose is Purpose.SUMMARY else None

    async with talking(talk=talk) as house:
        last = await asked_until_compacted(house)
        assert (last.status, items_of(last)) == ("completed", ["compaction", "message"])
        assert house.observer.compactions == [outcome]
        assert UserMessage(content=COMPACTED) in shell_of(house).answers[-1].history
        assert not any(entry.kind is EntryKind.SUMMARY for entry in house.log_of(last.conversation_id))
        await house.ask(input="And now?", previous_response_id=last.id)
        assert house.observer.drifts == []
        check_response(last.body)


async def test_a_conversation_of_500_turns_keeps_running_in_a_window_of_32k() -> None:
    async with talking(32_000) as house:
        last = await house.ask(input="FACT-first My name is Ada.")
        for number in range(500):
            last = await house.ask(input=f"{number} {LONG}", previous_response_id=last.id)
            assert last.status == "completed"
        shell = shell_of(house)
        assert len(shell.summaries) > 20
        assert set(house.observer.compactions) == {"summarised"}
        assert facts_in(whole_prompt(shell.answers[-1])) == ["FACT-first"]
        assert house.observer.drifts == []


async def test_a_turn_that_outgrows_the_window_leaves_earlier_turns_out_first() -> None:
    async with talking(16_000) as house:
        first = await house.ask(input=f"FACT-early {LONG}")
        second = await house.ask(input="LOOK 2000", previous_response_id=first.id)
        last = await house.ask(input="Again. LOOK 3000 3000 100", previous_response_id=second.id)
        shell = shell_of(house)
        assert house.observer.compactions == ["summarised"]
        assert items_of(last) == ["compaction", "message"]
        (summary,) = shell.summaries
        assert facts_in(summary.history) == ["FACT-early", "FACT-1"]
        after = shell.answers[-1]
        assert after.history[0] == UserMessage(content=frame_summary("FACT-early FACT-1"))
        assert after.prompt == "Again. LOOK 3000 3000 100"
        calls = await house.turns.model_calls(last.id)
        assert [call.call for call in calls] == [*range(1, len(calls) + 1)]
        assert [call.epoch_reason for call in calls if call.epoch_reason] == ["compaction"]
        assert house.observer.drifts == []
        assert house.observer.epochs[-1] == (1, "compaction")
        await check_events(house, last)
        await house.ask(input="And now?", previous_response_id=last.id)
        assert house.observer.drifts == []


async def test_results_of_earlier_turns_are_elided_at_a_compaction_and_their_calls_stay() -> None:
    async with talking(16_000) as house:
        last = await house.ask(input=LONG)
        last = await house.ask(input="LOOK 1500", previous_response_id=last.id)
        while not house.observer.compactions:
            last = await house.ask(input=LONG, previous_response_id=last.id)
            if len(shell_of(house).answers) == 6:
                last = await house.ask(input="LOOK 1500", previous_response_id=last.id)
        kept = shell_of(house).answers[-1].history
        results = [message for message in kept if isinstance(message, ToolMessage)]
        calls = [call for message in kept if isinstance(message, AssistantMessage) for call in message.tool_calls]
        assert [result.content for result in results] == [TOOL_RESULT_ELIDED] * len(calls)
        assert calls


@pytest.mark.parametrize("size", [3_000, 9_000])
async def test_twenty_huge_results_in_one_turn_end_well(size: int) -> None:
    async with talking(16_000) as house:
        last = await house.ask(input="LOOK " + f"{size} " * 20)
        assert last.status == "completed"
        assert len(house.observer.compactions) > 1
        assert set(house.observer.compactions) == {"elided"}
        assert items_of(last).count("compaction") == len(house.observer.compactions)
        assert house.observer.drifts == []
        newest = shell_of(house).answers[-1].added[-1]
        assert isinstance(newest, ToolMessage)
        assert newest.content != TOOL_RESULT_ELIDED
        await check_events(house, last)


async def test_a_file_that_a_running_turn_leaves_out_is_listed_in_the_next() -> None:
    files = stored(file_1=FakeText("cellar.txt", f"The file says {LONG}"))
    async with talking(16_000, files=files) as house:
        first = await house.ask(input=[user(part())])
        second = await house.ask(input="LOOK 2000", previous_response_id=first.id)
        last = await house.ask(input="Again. LOOK 3000 3000 100", previous_response_id=second.id)
        assert house.observer.compactions == ["summarised"]
        assert "The file says" not in str(shell_of(house).answers[-1].history)
        for number in range(2):
            last = await house.ask(input=f"And {number}?", previous_response_id=last.id)
            sent = shell_of(house).answers[-1]
            (block,) = files_in(sent)
            assert (LEFT_OUT in block, sent.reads_files) == (True, True)
        assert house.observer.epochs[1:] == [(1, "compaction"), (2, "tools_changed")]
        assert house.observer.drifts == []


async def test_two_parts_are_left_out_in_one_turn() -> None:
    async with talking(16_000) as house:
        last = await house.ask(input=f"FACT-one {LONG}")
        for number in range(3):
            last = await house.ask(input=f"FACT-b{number} {LONG}", previous_response_id=last.id)
        last = await house.ask(input="LOOK 2000 2500 2500 2500 2500 2500", previous_response_id=last.id)
        assert house.observer.compactions[:1] == ["summarised"]
        assert len(house.observer.compactions) >= 2
        assert [entry.epoch for entry in house.log_of(last.conversation_id)][-1] == len(house.observer.compactions)
        assert house.observer.drifts == []
        assert last.status == "completed"
        after = shell_of(house).answers[-1]
        assert {"FACT-one", "FACT-b0", "FACT-b1", "FACT-b2"} <= set(facts_in(whole_prompt(after)))


async def test_a_result_that_fits_no_window_ends_the_turn_with_the_figures() -> None:
    async with talking(16_000) as house:
        last = await house.ask(input="LOOK 16000")
        assert last.status == "failed"
        assert at(last.body, "error", "type") == ContextTooLong.__name__
        assert "needs about" in str(at(last.body, "error", "message"))
        assert house.observer.broken == []


async def test_after_a_change_to_a_smaller_model_the_summary_is_made_in_parts() -> None:
    async with talking(8_000) as house:
        last = await house.ask(input=f"FACT-0 {LONG}", model="vendor/large")
        for number in range(1, 25):
            last = await house.ask(input=f"FACT-{number} {LONG}", previous_response_id=last.id, model="vendor/large")
        last = await house.ask(input="FACT-last", previous_response_id=last.id, model="demo-model")
        shell = shell_of(house)
        assert len(shell.summaries) > 2
        assert house.observer.compactions == ["summarised"]
        known = facts_in(whole_prompt(shell.answers[-1]))
        assert set(known) == {*(f"FACT-{number}" for number in range(25)), "FACT-last"}
        shown = await house.read_prompts(ADA, last.id)
        for call, request in zip(shown, shell.requests[-len(shown) :], strict=True):
            assert len(objects_in(call["messages"])) == len(whole_prompt(request))


async def test_a_turn_that_is_not_stored_is_summarised_and_leaves_nothing() -> None:
    async with talking() as house:
        last = await house.ask(input=f"FACT-a0 {LONG}")
        while len(shell_of(house).answers) < 3:
            last = await house.ask(input=LONG, previous_response_id=last.id)
        log = list(house.log_of(last.conversation_id))
        unstored = await house.ask(input=f"{LONG}{LONG}", previous_response_id=last.id, store=False)
        assert (unstored.status, items_of(unstored)) == ("completed", ["compaction", "message"])
        assert "FACT-a0" in str(shell_of(house).answers[-1].history[0])
        assert house.log_of(last.conversation_id) == log


async def test_a_client_may_send_the_item_of_a_compaction_back() -> None:
    async with talking() as house:
        last = await asked_until_compacted(house)
        said = [{"role": "user", "content": "Hi"}, *objects_in(last.body["output"]), {"role": "user", "content": "So?"}]
        again = await house.ask(input=said)
        assert again.status == "completed"
        assert shell_of(house).answers[-1].history == (UserMessage(content="Hi"), AssistantMessage(text="Well."))


async def test_a_fork_behind_a_compaction_begins_with_the_same_bytes() -> None:
    async with talking() as house:
        compacted = await asked_until_compacted(house)
        await house.ask(input="On.", previous_response_id=compacted.id)
        first = shell_of(house).answers[-1]
        fork = await house.ask(input="On.", previous_response_id=compacted.id)
        assert fork.conversation_id != compacted.conversation_id
        assert whole_prompt(shell_of(house).answers[-1]) == whole_prompt(first)
        assert house.observer.drifts == []


async def test_no_summary_tells_of_an_item_that_is_taken_out() -> None:
    async with talking() as house:
        last = await asked_until_compacted(house)
        there = last.conversation_id
        kept = [f"FACT-a{number}" for number in range(len(shell_of(house).answers))]
        while len(kept) > 1:
            for kind in ("assistant", "user"):
                (newest,) = await house.conversations.items(there, after=None, limit=1, descending=True)
                if newest.body["type"] == "compaction":
                    await house.caller_conversations.remove_item(ADA, there, newest.id)
                    (newest,) = await house.conversations.items(there, after=None, limit=1, descending=True)
                assert newest.body.get("role") == kind
                await house.caller_conversations.remove_item(ADA, there, newest.id)
            kept.pop()
            sent = history(await house.conversations.log(there))
            assert facts_in(sent) == kept
        await house.ask(input="FACT-new", conversation=there)
        assert facts_in(whole_prompt(shell_of(house).answers[-1])) == [*kept, "FACT-new"]
        assert house.observer.drifts == []


async def test_a_defect_in_a_summary_is_reported_and_the_turn_goes_on() -> None:
    def talk(request: ExecutionRequest) -> Any:
        return ZeroDivisionError() if request.purpose is Purpose.SUMMARY else None

    async with talking(talk=talk) as house:
        last = await asked_until_compacted(house)
        assert (last.status, house.observer.compactions) == ("completed", ["failed"])
        assert [type(error) for error in house.observer.broken] == [ZeroDivisionError]


async def test_a_reminder_that_leaves_no_room_is_refused_before_anything_is_sent() -> None:
    async with talking(window_tokens=2_900) as house:
        await put_agent(house, reminder="r" * 4_000)
        with pytest.raises(ContextTooLong, match="instructions and tools alone take") as caught:
            await house.ask(input="Hi", model="helper")
        assert (caught.value.param, house.sent) == ("model", [])
