"""What a model says between two messages of others is one answer, however it is divided when it comes back."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.history_fingerprint import (
    boundaries_cooperatively,
    extend_chain,
    root_fingerprint,
    text_with_blank_lines,
)
from backend.foundation.domain.json_objects import result_of
from shared.models.messages import AssistantMessage, UserMessage
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA, open_house
from tests.unit.backend.turns.asking import SUFFIX, WEATHER, ask, said, texts, user


async def test_messages_of_one_turn_may_come_back_as_one() -> None:
    turn = [*answer("Let me see.")[:-1], *answer("A fox.")]
    async with open_house(turn) as house:
        first = await ask(house, user("Who?"))
        joined = await ask(house, user("Who?"), said("Let me see.\n\nA fox."), user("Sure?"))
        apart = await ask(house, user("Who?"), said("Let me see."), said("A fox."), user("Really?"))
        assert joined.conversation_id == first.conversation_id
        assert texts(house, 1) == texts(house, 2)
        assert apart.conversation_id != first.conversation_id


async def test_a_continued_answer_is_one_more_message_behind_it() -> None:
    async with open_house(answer("One."), answer("Two."), answer("Three.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One."))
        assert second.conversation_id == first.conversation_id
        assert (texts(house), house.sent[1].prompt) == ([f"A{SUFFIX}", "One."], None)
        assert second.input_items == ()
        apart = await ask(house, user("A"), said("One."), said("Two."), user("B"))
        assert apart.conversation_id == first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One.", "Two."]
        again = await ask(house, user("A"), said("One."), said("Two."), user("B"), said("Three."), user("C"))
        assert (again.conversation_id, house.sent[3].epoch) == (first.conversation_id, 0)


@pytest.mark.parametrize("merged", ["One.Two.", "One.\n\nTwo.", "One.\nTwo.", "\n One.Two.\r\n"])
async def test_a_continued_answer_that_a_client_has_merged_is_recognised(merged: str) -> None:
    async with open_house(answer("One."), answer("Two."), answer("Three.")) as house:
        first = await ask(house, user("A"))
        await ask(house, user("A"), said("One."))
        third = await ask(house, user("A"), said(merged), user("B"))
        again = await ask(house, user("A"), said(merged), user("B"), said("Three."), user("C"))
        assert {third.conversation_id, again.conversation_id} == {first.conversation_id}
        assert texts(house)[:4] == [f"A{SUFFIX}", "One.", "Two.", f"B{SUFFIX}"]


async def test_an_answer_that_is_continued_twice_comes_back_in_any_division() -> None:
    async with open_house(answer("One"), answer(" and two"), answer(" and three.")) as house:
        first = await ask(house, user("A"))
        await ask(house, user("A"), said("One"))
        await ask(house, user("A"), said("One and two"))
        assert texts(house) == [f"A{SUFFIX}", "One", " and two"]
        fourth = await ask(house, user("A"), said("One and"), said(" two and three."), user("B"))
        assert fourth.conversation_id == first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "One", " and two", " and three."]


async def test_white_space_that_clients_trim_of_an_answer_does_not_count() -> None:
    async with open_house(answer("\n\nOne.\n", "Two. "), answer("Three.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One.\nTwo."), user("B"))
        assert second.conversation_id == first.conversation_id
        assert texts(house) == [f"A{SUFFIX}", "\n\nOne.\nTwo. "]


async def test_what_the_release_before_has_stored_is_recognised_and_goes_on_in_any_division() -> None:
    async with open_house(answer("One."), answer("Two\nlines."), answer("Three.")) as house:
        first = await ask(house, user("A"))
        second = await ask(house, user("A"), said("One."), user("B"))
        history = [
            *[UserMessage(content="A"), AssistantMessage(text="One.")],
            *[UserMessage(content="B"), AssistantMessage(text="Two\nlines.")],
        ]
        root = root_fingerprint(ADA.tenant, ADA.user_id)
        *_, newest = result_of(boundaries_cooperatively(root, history, text_with_blank_lines))
        assert newest.digest != house.state.seen[-1][0] == second.seen
        house.state.seen[-1] = (newest.digest, second)
        third = await ask(house, user("A"), said("One."), user("B"), said("Two\nlines."), user("C"))
        resent = [user("A"), said("One."), user("B"), said("Two"), said("lines."), user("C"), said("Three."), user("D")]
        fourth = await ask(house, *resent)
        assert {third.conversation_id, fourth.conversation_id} == {first.conversation_id}


@given(st.text(), st.lists(st.integers(0, 40), max_size=4), st.sampled_from(("", "\n", "\n\n", "\r\n")))
def test_all_divisions_of_an_answer_make_one_chain(text: str, places: list[int], between: str) -> None:
    cuts = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    parts = [text[start:end] for start, end in pairwise(cuts)]
    root = root_fingerprint("tenant", "ann")
    whole, apart, joined = (
        extend_chain(root, [UserMessage(content="A"), *[AssistantMessage(text=said) for said in texts]])
        for texts in ([text], parts, [between.join(parts)])
    )
    assert whole is not None and apart is not None and joined is not None
    assert whole.digest == apart.digest == joined.digest
    longer = extend_chain(root, [UserMessage(content="A"), AssistantMessage(text=f"{text}.")])
    assert longer is not None and longer.digest != whole.digest


async def test_an_epoch_may_begin_where_only_the_answer_is_continued() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        first = await ask(house, user("A"), tools=[WEATHER])
        await ask(house, user("A"), said("One."))
        third = await ask(house, user("A"), said("One."), said("Two."), user("B"))
        assert third.conversation_id == first.conversation_id
        assert [request.epoch for request in house.sent] == [0, 1, 1]
        assert texts(house) == [f"A{SUFFIX}", "One.", "Two."]
