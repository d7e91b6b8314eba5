"""What becomes of turns whose provider finds the prompt too long, though it should fit."""

from typing import Any

import pytest

from shared.errors import ModelContextOverflow
from shared.models.error_reports import report_of
from shared.models.events import ExecutionEvent, ModelCallStarted, TextDelta, TurnFailed, Usage
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import ToolMessage
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from tests.fakes.chat_shell_talking import (
    LONG,
    facts_in,
    items_of,
    prompt_tokens,
    shell_of,
    talking,
    usual_events,
    whole_prompt,
)
from tests.fakes.json_paths import at
from tests.fakes.replicas import check_events
from tests.unit.backend.turns.placing import put_agent

TOO_LONG = TurnFailed(error=report_of(ModelContextOverflow("Too long.")), usage=Usage())


def refusing(limit_tokens: int, *said: ExecutionEvent) -> Any:
    """Refuse prompts from a size on, behind what was said until then: the window is smaller than its card says."""

    def talk(request: ExecutionRequest) -> list[ExecutionEvent] | None:
        if prompt_tokens(request) < limit_tokens:
            return None
        return [ModelCallStarted(call=1 + len(request.added) // 2), *said, TOO_LONG]

    return talk


async def test_a_prompt_that_its_provider_finds_too_long_is_compacted_and_sent_again() -> None:
    async with talking(64_000, refusing(4_000)) as house:
        last = await house.ask(input=f"FACT-a0 {LONG}")
        for number in range(1, 12):
            last = await house.ask(input=f"FACT-a{number} {LONG}", previous_response_id=last.id)
            assert last.status == "completed"
        shell = shell_of(house)
        assert "summarised" in house.observer.compactions
        assert facts_in(whole_prompt(shell.answers[-1])) == [f"FACT-a{number}" for number in range(12)]
        assert {reason for _, reason in house.observer.epochs} == {"new_conversation", "compaction"}
        assert house.observer.drifts == []
        await check_events(house, last)


@pytest.mark.parametrize("placement", ["classic", "anchored"])
async def test_an_agents_words_stay_in_a_conversation_that_is_shortened(placement: str) -> None:
    async with talking(64_000, refusing(5_000)) as house:
        await put_agent(house, placement=placement, instructions="CA")
        last = await house.ask(input=f"FACT-a0 {LONG}", model="helper")
        for number in range(1, 16):
            words = "LOOK 300 300" if number % 2 else LONG
            last = await house.ask(input=f"FACT-a{number} {words}", previous_response_id=last.id)
            assert last.status == "completed"
            sent = [
                str(message.content) for message in whole_prompt(shell_of(house).answers[-1]) if message.role == "user"
            ]
            assert sent.count("CA") == 1
        assert "summarised" in house.observer.compactions
        assert house.observer.drifts == []


async def test_results_of_the_running_turn_are_left_out_where_nothing_else_can_be() -> None:
    def talk(request: ExecutionRequest) -> list[ExecutionEvent] | None:
        """Look, and find the prompt with the third result too long."""
        if prompt_tokens(request) > 6_000:
            return [ModelCallStarted(call=4), TOO_LONG]
        return None if request.added else [*usual_events(request)[:-5], ModelCallStarted(call=4), TOO_LONG]

    async with talking(64_000, talk) as house:
        last = await house.ask(input="LOOK 2000 2000 2000")
        assert (last.status, house.observer.compactions) == ("completed", ["elided"])
        results = [message.content for message in shell_of(house).answers[-1].added if isinstance(message, ToolMessage)]
        assert (len(results), results[0]) == (3, TOOL_RESULT_ELIDED)
        assert results[-1] != TOOL_RESULT_ELIDED
        assert house.observer.drifts == []


async def test_a_turn_that_cannot_be_shortened_fails_with_the_figures() -> None:
    async with talking(64_000, refusing(2_000)) as house:
        last = await house.ask(input=f"{LONG}{LONG}{LONG}")
        assert (last.status, at(last.body, "error", "type")) == ("failed", ModelContextOverflow.__name__)
        message = str(at(last.body, "error", "message"))
        assert ("needs about" in message, "takes 59800 in a request" in message) == (True, True)
        assert (house.observer.compactions, len(shell_of(house).requests)) == ([], 1)


async def test_a_turn_is_shortened_once() -> None:
    def talk(request: ExecutionRequest) -> list[ExecutionEvent] | None:
        is_third = str(request.prompt).startswith("Third") and request.purpose is Purpose.ANSWER
        return [ModelCallStarted(call=1), TOO_LONG] if is_third else None

    async with talking(64_000, talk) as house:
        second = await house.ask(input=LONG)
        for _ in range(6):  # after the first time there is still something that could be left out
            second = await house.ask(input=LONG, previous_response_id=second.id)
        third = await house.ask(input="Third", previous_response_id=second.id)
        assert (third.status, at(third.body, "error", "type")) == ("failed", ModelContextOverflow.__name__)
        assert "needs about" in str(at(third.body, "error", "message"))
        assert len([asked for asked in shell_of(house).answers if asked.prompt == "Third"]) == 2
        assert len(house.observer.compactions) == 1
        await check_events(house, third)
        fourth = await house.ask(input="Fourth", previous_response_id=second.id)
        assert (fourth.status, house.observer.drifts) == ("completed", [])


async def test_an_answer_that_was_shown_is_not_begun_again() -> None:
    async with talking(64_000, refusing(4_000, TextDelta(text="Half "))) as house:
        last = await house.ask(input=LONG)
        while last.status == "completed":
            last = await house.ask(input=LONG, previous_response_id=last.id)
        assert at(last.body, "error", "message") == "Too long."
        assert items_of(last) == ["message"]
        assert house.observer.compactions == []
