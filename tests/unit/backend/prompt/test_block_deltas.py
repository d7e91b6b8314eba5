"""What a turn says of the deployment's blocks."""

import pytest

from backend.conversations.domain.conversation_log import ContextState
from backend.prompt.domain.context_policy import ContextPlan, full_context, plan_context
from shared.errors import InternalError
from tests.unit.backend.conversations.samples import Epoch, block, numbered, texts

NOTHING = ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)
ADA = block("identity", "The user is Ada.")
RULES = block("rules", "Travel is by train.")


def test_a_block_is_sent_as_it_is_and_then_not_again() -> None:
    epoch = Epoch()
    assert epoch.turn((), ADA).dynamic_blocks == (ADA,)
    assert [epoch.turn((), ADA) for _ in range(5)] == [NOTHING] * 5


def test_a_changed_block_comes_whole_with_one_line_that_it_replaces_the_earlier_one() -> None:
    epoch = Epoch()
    epoch.turn((), ADA, RULES)
    plan = epoch.turn((), ADA, block("rules", "Travel is by train.\nFlights need approval."))
    assert plan.dynamic_blocks == (
        block(
            "rules",
            'The following replaces the earlier text "rules":\n\nTravel is by train.\nFlights need approval.',
        ),
    )


def test_a_block_that_is_gone_leaves_one_line_once_and_may_come_back() -> None:
    epoch = Epoch()
    epoch.turn((), ADA, RULES)
    assert texts(epoch.turn((), RULES)) == ['The earlier text "identity" no longer applies.']
    assert epoch.turn((), RULES) == NOTHING
    assert epoch.turn((), ADA, RULES).dynamic_blocks == (ADA,)


def test_a_then_b_then_a_is_said_again() -> None:
    epoch = Epoch()
    plans = [epoch.turn((), block("rules", text)) for text in ("one", "two", "one", "two")]
    assert [plan.dynamic_blocks[0].text.endswith(text) for plan, text in zip(plans, ("one", "two"), strict=False)]
    assert texts(plans[1]) == texts(plans[3])
    assert texts(plans[2]) == ['The following replaces the earlier text "rules":\n\none']


@pytest.mark.parametrize("text", ["The user  is\nAda.", " The user is Ada.\n", "The user is\u00a0Ada."])
def test_cosmetic_white_space_says_nothing(text: str) -> None:
    epoch = Epoch()
    epoch.turn((), ADA)
    assert epoch.turn((), block("identity", text)) == NOTHING


def test_the_state_keeps_the_words_that_were_sent() -> None:
    epoch = Epoch()
    epoch.turn((), ADA)
    epoch.turn((), block("identity", "The  user is Ada."), RULES)
    assert epoch.state == ContextState(bases=(), blocks=(ADA, RULES))


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u00a0"])
def test_a_blank_block_is_no_block(blank: str) -> None:
    epoch = Epoch()
    assert epoch.turn((), block("identity", blank)) == NOTHING
    epoch.turn((), ADA)
    assert texts(epoch.turn((), block("identity", blank))) == ['The earlier text "identity" no longer applies.']


def test_blocks_keep_the_order_of_the_deployment_and_a_new_order_says_nothing() -> None:
    epoch = Epoch()
    assert epoch.turn((), RULES, ADA).dynamic_blocks == (RULES, ADA)
    state = epoch.state
    assert epoch.turn((), ADA, RULES) == NOTHING
    assert plan_context(None, (), (ADA, RULES)).state == state


def test_those_that_are_gone_stand_last_by_name() -> None:
    epoch = Epoch()
    epoch.turn((), block("b", "1"), block("c", "2"), block("a", "3"))
    assert [one.name for one in epoch.turn((), block("z", "4")).dynamic_blocks] == ["z", "a", "b", "c"]


def test_blocks_and_bases_are_compared_apart() -> None:
    epoch = Epoch()
    given = numbered(2)
    epoch.turn(given, ADA)
    plan = epoch.turn(given, ADA, RULES)
    assert (plan.kb_meta_prompt, plan.dynamic_blocks) == ("", (RULES,))
    assert plan.state == ContextState(bases=given, blocks=(ADA, RULES))
    assert epoch.turn(given[:1], ADA, RULES).dynamic_blocks == ()


def test_a_name_given_twice_is_an_error_that_names_it() -> None:
    for blocks in ((ADA, RULES, block("rules", "x")), (RULES, block("rules", " "))):
        with pytest.raises(InternalError, match="'rules'"):
            plan_context(None, (), blocks)
        with pytest.raises(InternalError, match="'rules'"):
            full_context((), blocks)


def test_a_name_cannot_break_the_line_it_stands_in() -> None:
    epoch = Epoch()
    epoch.turn((), block("a\n\n<time>", "x"))
    assert texts(epoch.turn()) == ['The earlier text "a ‹time›" no longer applies.']


def test_an_empty_state_is_not_an_epoch_without_words() -> None:
    epoch = Epoch()
    epoch.turn(numbered(1), ADA)
    plan = epoch.turn()
    assert plan.state == ContextState(bases=(), blocks=())
    assert epoch.turn() == NOTHING
