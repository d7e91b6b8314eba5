"""The generator makes what the bench is about, and the same again from a seed."""

from itertools import pairwise

import pytest

from backend.conversations.domain.conversation_log import EpochReason
from tests.bench.cache.conversations import Conversation, Ending
from tests.bench.cache.generator import SMALL, conversation
from tests.bench.cache.layouts import DURABLE
from tests.bench.cache.playing import play


@pytest.fixture(scope="module")
def many() -> list[Conversation]:
    return [conversation(seed, SMALL) for seed in range(300)]


def test_a_seed_makes_the_same_conversation_again(many: list[Conversation]):
    assert conversation(7, SMALL) == many[7]
    assert many[7] != many[8]


def test_turns_go_on_behind_earlier_ones(many: list[Conversation]):
    for one in many:
        known: set[str | None] = {None}
        for turn in one.turns:
            assert turn.after in known
            known.add(turn.id)


def test_all_that_may_happen_happens(many: list[Conversation]):
    turns = [turn for one in many for turn in one.turns]

    assert {turn.ending for turn in turns} == set(Ending)
    assert max(turn.attempts for turn in turns) == 3
    assert any(turn.is_reloaded for turn in turns)
    assert any(len(step.calls) > 1 for turn in turns for step in turn.steps)
    assert any(one.narrows_access for one in many)
    assert any(later.after != before.id for one in many for before, later in pairwise(one.turns))


def test_knowledge_is_added_edited_removed_and_reordered(many: list[Conversation]):
    seen: set[str] = set()
    for one in many:
        for before, later in pairwise(one.turns):
            old = {binding.base.id: binding.base.summary.strip() for binding in before.bindings}
            new = {binding.base.id: binding.base.summary.strip() for binding in later.bindings}
            seen |= {"added"} if new.keys() - old.keys() else set()
            seen |= {"removed"} if old.keys() - new.keys() else set()
            seen |= {"edited"} if any(old[key] != new[key] for key in old.keys() & new.keys()) else set()
            seen |= {"reordered"} if old == new and list(old) != list(new) else set()

    assert seen == {"added", "removed", "edited", "reordered"}


def test_epochs_start_for_each_reason_that_a_turn_can_give(many: list[Conversation]):
    missing = {
        EpochReason.MODEL_CHANGED,
        EpochReason.TOOLS_CHANGED,
        EpochReason.INSTRUCTIONS_CHANGED,
        EpochReason.COMPACTION,
        EpochReason.ACCESS_CHANGED,
    }
    for one in many:
        if missing:
            missing -= set(play(one, DURABLE).resets)

    assert not missing
