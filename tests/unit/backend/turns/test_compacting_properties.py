"""Over generated conversations that outgrow their window, nothing that an epoch has sent ever moves."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.chat_shell_talking import TalkingChatShell, check_pairs, prompt_tokens, whole_prompt
from tests.fakes.openai_house import TurnHouse
from tests.patience import PATIENCE_SECONDS

WINDOW, ANSWER = 8_000, 1_000
BUDGET = WINDOW - ANSWER - WINDOW * 5 // 100

sizes = st.integers(1, 1_400)
questions = st.one_of(
    sizes.map(lambda size: "word " * size),
    st.lists(st.integers(1, 1_500), min_size=1, max_size=6).map(lambda looks: "LOOK " + " ".join(map(str, looks))),
)


async def played(asked: Sequence[str]) -> tuple[TurnHouse, TalkingChatShell]:
    shell = TalkingChatShell(WINDOW, ANSWER)
    house = TurnHouse(chat_shell=shell)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        conversation: dict[str, Any] = {}
        for question in asked:
            response = await house.ask(input=question, **conversation)
            assert response.status == "completed"
            conversation = {"conversation": response.conversation_id}
    return house, shell


@settings(max_examples=60)
@given(st.lists(questions, min_size=3, max_size=14))
async def test_nothing_drifts_and_every_request_fits(asked: list[str]) -> None:
    house, shell = await played(asked)
    assert house.observer.drifts == []
    assert set(house.observer.compactions) <= {"summarised", "elided"}
    for request in shell.requests:
        prompt = whole_prompt(request)
        check_pairs(prompt)
        assert prompt_tokens(request) <= BUDGET
        assert prompt[1].role == "user"
    for before, after in pairwise(shell.answers):
        if before.epoch == after.epoch:
            sent = whole_prompt(before)
            assert whole_prompt(after)[: len(sent)] == sent
