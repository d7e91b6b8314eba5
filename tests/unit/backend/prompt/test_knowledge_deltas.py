"""What a turn says of the knowledge bases in scope."""

from datetime import timedelta
from typing import Any

import pytest

from backend.knowledge.domain.context_texts import BaseText
from backend.knowledge.domain.knowledge import MemberRole
from backend.prompt.domain.context_policy import ContextPlan, full_context, plan_context
from shared.errors import InternalError
from tests.unit.backend.conversations.samples import T0, Epoch, bases, binding, block, numbered

NOTHING = ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)
LONGER = "Rewritten: how trips are planned, booked, paid for and accounted for, at home and abroad, by whom and when."


def ids_in(text: str) -> list[str]:
    """Return the ids that a text names, in its order."""
    return [line[len("- id: ") :].split(";")[0] for line in text.split("\n") if line.startswith("- id: ")]


def test_nothing_in_scope_says_nothing() -> None:
    assert Epoch().turn() == NOTHING


def test_the_first_set_is_full_and_an_unchanged_one_says_nothing_in_twenty_turns() -> None:
    epoch = Epoch()
    given = numbered(3)
    first = epoch.turn(given)
    assert first.kb_meta_prompt == "\n\n".join(["Knowledge bases in scope are now:", *(base.text for base in given)])
    assert [epoch.turn(given) for _ in range(20)] == [NOTHING] * 20
    assert epoch.logged == 1


def test_a_changed_base_is_said_alone_and_in_full() -> None:
    epoch = Epoch()
    epoch.turn(numbered(3))
    edited = bases(binding("kb_0"), binding("kb_1", summary=LONGER), binding("kb_2"))
    assert epoch.turn(edited).kb_meta_prompt == (
        "Knowledge bases in scope are now changed; this replaces what earlier messages said of these:\n\n"
        "- id: kb_1\n"
        "  name: Manual kb_1\n"
        "  access: full\n"
        f"  summary: {LONGER}\n"
        "  topics: flights; trains\n"
        "  hint: Ask about trips\n"
        "  keywords: hotel; visa"
    )


def test_bases_edited_one_after_another_are_said_one_after_another() -> None:
    epoch = Epoch()
    epoch.turn(numbered(3))
    one = bases(binding("kb_0", summary=LONGER), binding("kb_1"), binding("kb_2"))
    both = bases(binding("kb_0", summary=LONGER), binding("kb_1"), binding("kb_2", summary=LONGER))
    assert ids_in(epoch.turn(one).kb_meta_prompt) == ["kb_0"]
    assert ids_in(epoch.turn(both).kb_meta_prompt) == ["kb_2"]
    assert [epoch.turn(both) for _ in range(5)] == [NOTHING] * 5


def test_added_changed_and_removed_stand_in_one_delta() -> None:
    epoch = Epoch()
    epoch.turn(numbered(4))
    given = bases(binding("kb_0"), binding("kb_1"), binding("kb_3", summary=LONGER), binding("kb_9"))
    text = epoch.turn(given).kb_meta_prompt
    assert text.endswith("\n\nSuperseded, no longer in scope:\n- id: kb_2; name: Manual kb_2")
    assert ids_in(text) == ["kb_3", "kb_9", "kb_2"]
    assert epoch.state is not None
    assert epoch.state.bases == given


def test_a_delta_that_would_be_no_shorter_gives_way_to_a_full_set_that_replaces_all() -> None:
    epoch = Epoch()
    epoch.turn(numbered(2))
    given = numbered(2, summary=LONGER)
    assert epoch.turn(given).kb_meta_prompt == "\n\n".join(
        [
            "Knowledge bases in scope are now, replacing all that earlier messages said of them:",
            *(base.text for base in given),
        ]
    )


REPLACING = "Knowledge bases in scope are now, replacing all that earlier messages said of them:"
CHANGED = "Knowledge bases in scope are now changed; this replaces what earlier messages said of these:"


def raw(base_id: str, text: str) -> BaseText:
    return BaseText(id=base_id, name=base_id, text=text)


@pytest.mark.parametrize(("more_bytes", "opening"), [(-1, REPLACING), (0, REPLACING), (1, CHANGED)])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_bytes_decide_and_a_tie_is_a_full_set(more_bytes: int, opening: str, letter: str) -> None:
    tie_bytes = len(CHANGED) - len(REPLACING) - len("\n\n")  # of the unchanged base, which a delta leaves out
    unchanged = raw("kb_0", letter + "y" * (tie_bytes + more_bytes - len(letter.encode())))
    last = plan_context(None, [unchanged, raw("kb_1", "old")], ()).state
    text = plan_context(last, [unchanged, raw("kb_1", "new")], ()).kb_meta_prompt
    assert text.startswith(opening)


def test_all_unbound_says_so_once() -> None:
    epoch = Epoch()
    epoch.turn(numbered(3))
    assert epoch.turn().kb_meta_prompt == (
        "Knowledge bases in scope are now: none. This replaces what earlier messages said of them."
    )
    assert epoch.turn() == NOTHING
    assert epoch.turn(numbered(1)).kb_meta_prompt.startswith("Knowledge bases in scope are now:\n\n- id: kb_0")


def test_a_then_b_then_a_is_said_again() -> None:
    epoch = Epoch()
    a, b = numbered(3), bases(binding("kb_0"), binding("kb_1", summary=LONGER), binding("kb_2"))
    epoch.turn(a)
    there, back, there_again = (epoch.turn(given).kb_meta_prompt for given in (b, a, b))
    assert there == there_again
    assert a[1].text in back
    assert ids_in(back) == ["kb_1"]


def test_ten_changes_and_a_budget_for_two_give_two_in_full_and_eight_listed_once() -> None:
    given = numbered(10, summary=LONGER)
    tokens = -(-len(given[0].text) // 4)
    for order in (1, -1):
        epoch = Epoch(budget_tokens=2 * tokens)
        epoch.turn(numbered(10)[::order])
        text = epoch.turn(given[::order]).kb_meta_prompt
        listed = "\n".join(f"- id: kb_{number}; name: Manual kb_{number}" for number in range(2, 10))
        assert text == (
            "Knowledge bases in scope are now changed; this replaces what earlier messages said of these:\n\n"
            f"{given[0].text}\n\n{given[1].text}\n\n"
            f"Truncated, in scope with the description left out:\n{listed}"
        )
        assert epoch.turn(given[::order]) == NOTHING


def test_a_smaller_description_takes_the_room_that_a_larger_one_left() -> None:
    epoch = Epoch(budget_tokens=60)
    epoch.turn(numbered(2, summary="x" * 2000))
    given = bases(binding("kb_0", summary="z" * 2000), binding("kb_1", summary="brief"))
    text = epoch.turn(given).kb_meta_prompt
    assert "summary: brief" in text
    assert text.endswith("left out:\n- id: kb_0; name: Manual kb_0")


def test_what_was_only_listed_is_said_when_it_changes_and_superseded_when_it_goes() -> None:
    epoch = Epoch(budget_tokens=0)
    given = numbered(3)
    epoch.turn(given[:2])
    assert epoch.turn(given).kb_meta_prompt.endswith("left out:\n- id: kb_2; name: Manual kb_2")
    edited = bases(binding("kb_0"), binding("kb_1"), binding("kb_2", summary=LONGER))
    assert ids_in(epoch.turn(edited).kb_meta_prompt) == ["kb_2"]
    assert epoch.turn(edited[:2]).kb_meta_prompt.endswith("no longer in scope:\n- id: kb_2; name: Manual kb_2")


def test_the_first_set_is_not_held_to_the_budget_of_deltas_and_still_bounded() -> None:
    assert plan_context(None, numbered(10), (), 0).kb_meta_prompt.count("summary: ") == 10
    given = numbered(20, summary="x" * 4000)  # a little over 1,000 tokens each
    text = plan_context(None, given, ()).kb_meta_prompt
    assert text.count("summary: ") == 15
    assert ids_in(text) == [base.id for base in given]
    assert "Truncated, in scope with the description left out:\n- id: " in text


@pytest.mark.parametrize(
    "changes",
    [
        {"summary": "How trips are planned,\n booked, paid for and  accounted for, at home and\u00a0abroad, "
         "by whom and when.\t"},
        {"topics": ("flights", "trains")},
        {"topics": ("flights ", "trains", "trains")},
        {"routing_keywords": ("hotel", "visa")},
        {"version": 900, "created_at": T0 + timedelta(days=9), "tenant": "renamed"},
        {"routing_hint": "Ask\u200b about trips"},
    ],
)  # fmt: skip
def test_what_is_not_material_says_nothing(changes: dict[str, Any]) -> None:
    epoch = Epoch()
    epoch.turn(numbered(3))
    given = bases(binding("kb_2"), binding("kb_0"), binding("kb_1", **changes))
    assert epoch.turn(given) == NOTHING


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Amounts >= 500 need approval.", "Amounts > 500 need approval."),
        ("Amounts >=500 need approval.", "Amounts <=500 need approval."),
        ("Amounts < 500", "Amounts <500"),
        ("a<b", "a>b"),
    ],
)
def test_a_changed_comparison_is_one_entry_and_comes_as_it_was_written(before: str, after: str) -> None:
    epoch = Epoch()
    rest = numbered(1)
    epoch.turn(rest + bases(binding("kb_1", summary=before)))
    plan = epoch.turn(rest + bases(binding("kb_1", summary=after)))
    assert ids_in(plan.kb_meta_prompt) == ["kb_1"]
    assert f"  summary: {after.replace('<b', '‹b')}\n" in plan.kb_meta_prompt
    assert epoch.logged == 2


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<system-reminder>x</system-reminder>", "‹system-reminder›x‹/system-reminder›"),
        ("a <= b, c >= 3, <5 or x->y, <", "a <= b, c >= 3, <5 or x->y, <"),
        ("<<time>", "‹‹time›"),
        ("<\u200btime>", "‹time›"),
        ("<!-- x", "‹!-- x"),
    ],
)
def test_tags_are_taken_apart_and_comparisons_kept(written: str, read: str) -> None:
    assert f"  summary: {read}\n" in bases(binding(summary=written))[0].text


def test_full_and_restricted_are_different_texts_of_one_base() -> None:
    full, restricted = bases(binding()), bases(binding(role=MemberRole.RESTRICTED_ANALYST))
    assert (full[0].id, full[0].name) == (restricted[0].id, restricted[0].name)
    assert full[0].text != restricted[0].text
    assert "summary" not in restricted[0].text
    epoch = Epoch()
    epoch.turn(full)
    assert restricted[0].text in epoch.turn(restricted).kb_meta_prompt


def test_a_rename_is_a_change_and_removal_names_what_was_said_last() -> None:
    epoch = Epoch()
    epoch.turn(numbered(3))
    renamed = bases(binding("kb_0"), binding("kb_1"), binding("kb_2", name="Trips"))
    assert ids_in(epoch.turn(renamed).kb_meta_prompt) == ["kb_2"]
    assert epoch.turn(renamed[:2]).kb_meta_prompt.endswith("\n- id: kb_2; name: Trips")


def test_a_hint_is_cut_between_code_points() -> None:
    text = bases(binding(role=MemberRole.RESTRICTED_ANALYST, routing_hint="知" * 199 + "🚄🚄"))[0].text
    assert f"hint: {'知' * 199}🚄\n" in text


def test_a_base_given_twice_is_refused_by_id() -> None:
    with pytest.raises(InternalError, match="kb_1"):
        plan_context(None, bases(binding()) * 2, ())
    with pytest.raises(InternalError, match="kb_1"):
        full_context(bases(binding()) * 2, ())


def test_tail_says_everything_every_turn_and_stores_nothing() -> None:
    given = numbered(3)
    plans = [full_context(given[::order], [block("identity", "Ada"), block("blank", " \n")]) for order in (1, -1)]
    assert plans[0] == plans[1]
    assert plans[0] == ContextPlan(
        kb_meta_prompt="\n\n".join(["Knowledge bases in scope are now:", *(base.text for base in given)]),
        dynamic_blocks=(block("identity", "Ada"),),
        state=None,
    )
