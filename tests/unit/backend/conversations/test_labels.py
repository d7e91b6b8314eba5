"""Which words come from which knowledge, and who may read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.knowledge.domain.labels import Label, decode_labels, encode_labels, join_labels, may_read
from shared.models.execution import AccessMode

FULL, RESTRICTED = AccessMode.FULL, AccessMode.RESTRICTED
labels = st.lists(st.builds(Label, st.sampled_from(["kb_a", "kb_b", "kb_c"]), st.sampled_from(AccessMode)))


@given(labels)
def test_labels_survive_their_text_and_name_each_base_once(given_labels: list[Label]) -> None:
    joined = join_labels(given_labels)
    assert decode_labels(encode_labels(joined)) == joined
    assert [label.base_id for label in joined] == sorted({label.base_id for label in given_labels})
    assert joined == join_labels(reversed(given_labels)) == join_labels([*joined, *given_labels])


def test_text_of_a_base_asks_for_more_than_what_was_released_of_it() -> None:
    assert join_labels([Label("kb_a", RESTRICTED), Label("kb_a", FULL)]) == (Label("kb_a", FULL),)


@pytest.mark.parametrize(
    ("mode", "label_mode", "allowed"),
    [(FULL, FULL, True), (FULL, RESTRICTED, True), (RESTRICTED, RESTRICTED, True), (RESTRICTED, FULL, False)],
)
def test_a_member_reads_what_their_mode_allows(mode: AccessMode, label_mode: AccessMode, allowed: bool) -> None:
    assert may_read({"kb_a": mode, "kb_b": FULL}, [Label("kb_a", label_mode), Label("kb_b", FULL)]) is allowed


@pytest.mark.parametrize("mode", AccessMode)
def test_who_is_no_member_reads_nothing(mode: AccessMode) -> None:
    assert not may_read({}, [Label("kb_a", mode)])
    assert may_read({}, [])
