"""What a model is told about the bases in scope."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from backend.knowledge.domain.context_texts import full_set
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole

T0 = datetime(2026, 11, 22, tzinfo=UTC)


def binding(role: MemberRole = MemberRole.READER, **changes: object) -> Binding:
    fields: dict[str, object] = {
        "id": "kb_1",
        "tenant": "acme",
        "name": "Travel",
        "summary": "How trips are booked and paid for.",
        "topics": ("trains", "flights"),
        "routing_hint": "Ask about trips",
        "routing_keywords": ("visa", "hotel"),
        "version": 1,
        "created_at": T0,
    }
    return Binding(base=KnowledgeBase.model_validate({**fields, **changes}), role=role)


FIELDS = ("name", "access", "summary", "topics", "hint", "keywords", "note")
STARTS = ("- id: kb_", *(f"  {field}: " for field in FIELDS))

texts = st.text(max_size=300)
bindings = st.lists(
    st.builds(
        binding,
        role=st.sampled_from(MemberRole),
        id=st.sampled_from(["kb_1", "kb_2", "kb_3", "kb_4"]),
        name=texts,
        summary=texts,
        topics=st.lists(texts, max_size=4).map(tuple),
        routing_hint=texts,
        routing_keywords=st.lists(texts, max_size=8).map(tuple),
    ),
    max_size=4,
    unique_by=lambda found: found.base.id,
)


def described(bound: Sequence[Binding]) -> str:
    """Describe the bases as the first turn of an epoch does."""
    return full_set(render_bases(bound))


def test_no_base_no_text() -> None:
    assert described([]) == ""


def test_the_full_form() -> None:
    assert described([binding()]) == (
        "Knowledge bases in scope are now:\n\n"
        "- id: kb_1\n"
        "  name: Travel\n"
        "  access: full\n"
        "  summary: How trips are booked and paid for.\n"
        "  topics: flights; trains\n"
        "  hint: Ask about trips\n"
        "  keywords: hotel; visa"
    )


def test_the_restricted_form_holds_no_summary_and_no_topics() -> None:
    assert described([binding(MemberRole.RESTRICTED_ANALYST)]) == (
        "Knowledge bases in scope are now:\n\n"
        "- id: kb_1\n"
        "  name: Travel\n"
        "  access: access is restricted\n"
        "  hint: Ask about trips\n"
        "  keywords: hotel; visa\n"
        "  note: hint and keywords serve for drafting search queries; they are no material for answers"
    )


def test_each_base_has_its_own_form_and_empty_fields_none() -> None:
    open_base = binding(id="kb_2", name="Open", topics=(), summary=" \n ", routing_hint="", routing_keywords=())
    text = described([binding(MemberRole.RESTRICTED_ANALYST), open_base])
    assert text.index("name: Open\n  access: full\n\n- id: kb_1") < text.index("access is restricted")
    assert "summary" not in text


def test_hint_and_keywords_of_a_restricted_base_are_bounded() -> None:
    long = binding(
        MemberRole.RESTRICTED_ANALYST,
        routing_hint="h" * 500,
        routing_keywords=tuple(f"{letter}{'k' * 100}" for letter in "gfedcba"),
    )
    text = described([long])
    assert f"hint: {'h' * 200}\n" in text
    keywords = text.split("keywords: ")[1].split("\n")[0].split("; ")
    assert keywords == [f"{letter}{'k' * 47}" for letter in "abcde"]


def test_what_is_not_rendered_changes_nothing() -> None:
    other = binding(version=7, created_at=T0 + timedelta(days=9), tenant="else")
    assert described([other]) == described([binding()])


def test_cosmetic_white_space_changes_nothing() -> None:
    other = binding(
        name=" Travel\t", summary="How  trips\nare booked\u00a0and paid for. ", topics=("trains ", "flights")
    )
    assert described([other]) == described([binding()])


def test_a_base_that_is_bound_twice_shows_once_in_its_strictest_form() -> None:
    both = [binding(MemberRole.RESTRICTED_ANALYST), binding(MemberRole.OWNER)]
    assert described(both) == described(both[::-1]) == described(both[:1])


@given(bindings, st.randoms(use_true_random=False))
def test_order_of_bases_topics_and_keywords_changes_nothing(given: list[Binding], generator: object) -> None:
    shuffled = [
        found.model_copy(
            update={
                "base": found.base.model_copy(
                    update={
                        "topics": found.base.topics[::-1],
                        "routing_keywords": found.base.routing_keywords[::-1],
                    }
                )
            }
        )
        for found in reversed(given)
    ]
    assert described(shuffled) == described(given)


@given(bindings)
def test_no_text_breaks_the_structure(given: list[Binding]) -> None:
    lines = described(given).split("\n")
    assert sum(line.startswith("- id: ") for line in lines) == len(given)
    for line in lines[2:]:
        assert line == "" or line.startswith(STARTS)
        assert line.isprintable()
        assert not set(line) & set("`[]|")
        assert re.search(r"<(?:[^\W\d]|[/!?])", line) is None
