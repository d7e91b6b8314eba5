"""Who gets a summary whose model was shown words of an agent: those who may use that agent, and nobody else."""

from typing import Any

import pytest

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.responses import StoredResponse
from shared.prompts.summary import SUMMARY_INSTRUCTION
from tests.fakes.chat_shell_talking import (
    LONG,
    answered,
    asked_until_compacted,
    facts_in,
    items_of,
    shell_of,
    talking,
    whole_prompt,
)
from tests.fakes.openai_house import ADA, BOB, TurnHouse
from tests.unit.backend.turns.placing import prompts_of, put_agent

WORDS = "FACT-agent"
SAID = "FACT-a0"


def repeating(request: Any) -> Any:
    """Summarise by repeating all facts of the prompt, its system message among it."""
    is_summary = str(request.prompt) == SUMMARY_INSTRUCTION
    return answered(request, " ".join(facts_in(whole_prompt(request)))) if is_summary else None


async def shared_with_bob(house: TurnHouse, agent: dict[str, str]) -> StoredResponse:
    """Compact a conversation with an agent that Bob may not use, and share it with that user."""
    fields: dict[str, Any] = {**agent}
    await put_agent(house, **fields)
    last = await asked_until_compacted(house, model="helper")
    await house.members.set(ADA, last.conversation_id, BOB.user_id, ConversationRole("writer"))
    assert {WORDS, SAID} <= set(facts_in(shell_of(house).answers[-1].history))
    return last


def facts_sent(house: TurnHouse) -> set[str]:
    return set(facts_in(whole_prompt(shell_of(house).answers[-1])))


FORMS = pytest.mark.parametrize(
    "agent", [{"instructions": WORDS}, {"instructions": "", "system_prompt": WORDS}], ids=["instructions", "opening"]
)


@FORMS
async def test_who_may_not_use_the_agent_is_neither_shown_nor_sent_its_summary(agent: dict[str, str]) -> None:
    async with talking(talk=repeating) as house:
        last = await shared_with_bob(house, agent)
        assert WORDS in str(await prompts_of(house, last))
        assert WORDS not in str(await prompts_of(house, last, BOB))
        of_bob = await house.ask(BOB, input="U", conversation=last.conversation_id, model="demo-model")
        assert facts_sent(house).isdisjoint({WORDS, SAID})
        assert WORDS not in str(await prompts_of(house, of_bob, BOB))

        count = len(house.observer.epochs)
        await house.ask(input="V", conversation=last.conversation_id, model="helper")
        assert {WORDS, SAID} <= facts_sent(house)
        assert len(house.observer.epochs) == count + 1
        assert house.observer.drifts == []


async def test_a_summary_of_the_summary_belongs_to_the_agent_too() -> None:
    async with talking(talk=repeating) as house:
        last = await shared_with_bob(house, {"instructions": WORDS})
        count = len(house.observer.compactions)
        while len(house.observer.compactions) == count:  # Ada goes on without the agent, which she may use
            last = await house.ask(input=LONG, previous_response_id=last.id, model="demo-model")
        assert items_of(last)[0] == "compaction"
        assert WORDS in facts_in(shell_of(house).answers[-1].history[:1])
        assert WORDS not in str(await prompts_of(house, last, BOB))
        await house.ask(BOB, input="U", conversation=last.conversation_id)
        assert WORDS not in facts_sent(house)


async def test_a_summary_without_words_of_an_agent_is_everybodys() -> None:
    async with talking(talk=repeating) as house:
        await put_agent(house, instructions=WORDS, placement="classic")
        last = await asked_until_compacted(house, model="helper")
        await house.members.set(ADA, last.conversation_id, BOB.user_id, ConversationRole("writer"))
        await house.ask(BOB, input="U", conversation=last.conversation_id, model="demo-model")
        assert SAID in facts_sent(house)
        assert WORDS not in facts_sent(house)
