"""What holds for any sequence of edits in an epoch."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.conversation_log import ContextState
from backend.knowledge.domain.context_texts import BaseText
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.prompt.domain.context_policy import ContextPlan
from shared.models.execution import DynamicBlock
from tests.unit.backend.conversations.reader import CHANGED, SUPERSEDED, TRUNCATED, WHOLE, Reader
from tests.unit.backend.conversations.samples import Epoch, binding, block

Turn = tuple[list[Binding], list[DynamicBlock]]

tricky = st.sampled_from(
    ["", "a", "知识🚄", "Superseded, no longer in scope:", "- id: kb_9; name: x", "a\n\nb", "x" * 90]
)
prose = tricky | st.text(max_size=20)
words = st.lists(prose, max_size=3).map(tuple)
bindings = st.lists(
    st.builds(
        binding,
        base_id=st.sampled_from(["kb_0", "kb_1", "kb_2", "kb_3", "kb_4"]),
        role=st.sampled_from([MemberRole.READER, MemberRole.RESTRICTED_ANALYST]),
        name=prose,
        summary=prose,
        topics=words,
        routing_hint=prose,
        routing_keywords=words,
    ),
    max_size=5,
    unique_by=lambda one: one.base.id,
)
blocks = st.lists(
    st.builds(block, name=st.sampled_from(["identity", "rules", "news"]), text=prose),
    max_size=3,
    unique_by=lambda one: one.name,
)
turns = st.lists(st.tuples(bindings, blocks), min_size=1, max_size=6)
budgets = st.sampled_from([0, 30, 60, 400])


def plans_of(turns: Sequence[Turn], budget_tokens: int) -> list[ContextPlan]:
    epoch = Epoch(budget_tokens)
    return [epoch.turn(render_bases(bound), *written) for bound, written in turns]


def shuffled(bound: Sequence[Binding], random: Random) -> list[Binding]:
    """Return the same bindings as other queries might have brought them."""
    mixed = [
        one.model_copy(
            update={
                "base": one.base.model_copy(
                    update={
                        "topics": tuple(random.sample(one.base.topics, len(one.base.topics))),
                        "routing_keywords": one.base.routing_keywords[::-1],
                        "version": random.randrange(99),
                    }
                )
            }
        )
        for one in bound
    ]
    return random.sample(mixed, len(mixed))


@given(turns, budgets)
def test_a_reader_of_all_plans_believes_the_truth(turns: list[Turn], budget_tokens: int) -> None:
    epoch, reader = Epoch(budget_tokens), Reader()
    for bound, written in turns:
        rendered = render_bases(bound)
        reader.read(epoch.turn(rendered, *written))
        assert {key: name for key, (name, _) in reader.bases.items()} == {base.id: base.name for base in rendered}
        believed = {text for _, text in reader.bases.values() if text is not None}
        assert believed <= {base.text for base in rendered}
        assert {name: text.split() for name, text in reader.blocks.items()} == {
            one.name: one.text.split() for one in written if one.text.strip()
        }


@given(turns)
def test_with_room_enough_a_reader_knows_every_description(turns: list[Turn]) -> None:
    epoch, reader = Epoch(100_000), Reader()
    for bound, written in turns:
        rendered = render_bases(bound)
        reader.read(epoch.turn(rendered, *written))
        assert reader.bases == {base.id: (base.name, base.text) for base in rendered}


@given(turns, budgets)
def test_the_state_is_the_truth_and_the_next_unchanged_turn_says_nothing(turns: list[Turn], budget_tokens: int) -> None:
    epoch = Epoch(budget_tokens)
    for bound, written in turns:
        rendered = render_bases(bound)
        epoch.turn(rendered, *written)
        present = [one for one in written if one.text.strip()]
        if epoch.state is not None:
            assert epoch.state.bases == rendered
            assert [one.name for one in epoch.state.blocks] == sorted(one.name for one in present)
        else:
            assert not rendered
            assert not present
        again = epoch.turn(rendered, *written)
        assert again == ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)


@given(turns, budgets, st.randoms(use_true_random=False))
def test_order_and_counters_change_no_byte(turns: list[Turn], budget_tokens: int, random: Random) -> None:
    mixed = [(shuffled(bound, random), written) for bound, written in turns]
    assert plans_of(mixed, budget_tokens) == plans_of(turns, budget_tokens)


@given(turns, budgets, st.randoms(use_true_random=False))
def test_bases_may_reach_the_policy_in_any_order(turns: list[Turn], budget_tokens: int, random: Random) -> None:
    epoch, mixed = Epoch(budget_tokens), Epoch(budget_tokens)
    for bound, written in turns:
        rendered = render_bases(bound)
        assert mixed.turn(random.sample(rendered, len(rendered)), *written) == epoch.turn(rendered, *written)


@given(turns, budgets)
def test_a_state_that_was_stored_plans_the_same(turns: list[Turn], budget_tokens: int) -> None:
    kept, stored = Epoch(budget_tokens), Epoch(budget_tokens)
    for bound, written in turns:
        if stored.state is not None:
            stored.state = ContextState.model_validate_json(stored.state.model_dump_json())
        rendered = render_bases(bound)
        assert stored.turn(rendered, *written) == kept.turn(rendered, *written)


def most_bytes(said: Sequence[BaseText], now: Sequence[BaseText], budget_tokens: int) -> int:
    """Return the stated bound of metadata that follows earlier metadata."""
    sentences = sum(len(text.encode()) + 2 for text in (WHOLE[1], CHANGED, TRUNCATED, SUPERSEDED))
    lines = sum(len(f"- id: {base.id}; name: {base.name}\n\n".encode()) for base in (*said, *now))
    return 4 * budget_tokens + sentences + lines


@given(turns, budgets)
def test_what_is_added_is_bounded(turns: list[Turn], budget_tokens: int) -> None:
    epoch = Epoch(budget_tokens)
    for bound, written in turns:
        said, spoken = (epoch.state.bases, epoch.state.blocks) if epoch.state else ((), ())
        rendered = render_bases(bound)
        plan = epoch.turn(rendered, *written)
        if said:
            assert len(plan.kb_meta_prompt.encode()) <= most_bytes(said, rendered, budget_tokens)
        added = sum(len(one.text) for one in plan.dynamic_blocks)
        assert added <= sum(len(one.text) + 60 for one in written) + 60 * len(spoken)


@given(turns, budgets)
def test_every_word_can_be_encoded(turns: list[Turn], budget_tokens: int) -> None:
    for plan in plans_of(turns, budget_tokens):
        for text in (plan.kb_meta_prompt, *(one.text for one in plan.dynamic_blocks)):
            assert text.encode().decode() == text
