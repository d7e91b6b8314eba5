"""Vectors, batches, and the names of models beside what they made."""

from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.embeddings.domain import (
    BatchBounds,
    ConfiguredEmbedder,
    TextForm,
    TextKind,
    text_batches,
    to_vector,
    vector_numbers,
)

PLAIN = ConfiguredEmbedder(model="small")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_a_vector_has_length_one_or_is_none(numbers: list[float]) -> None:
    length = hypot(*numbers)
    if length in (0.0, float("inf")):
        with pytest.raises(ValueError, match="finite"):
            to_vector(numbers)
    else:
        assert hypot(*vector_numbers(to_vector(numbers))) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("numbers", [[], [0.0], [float("nan"), 1.0], [float("inf")], [float("-inf"), 1.0]])
def test_what_has_no_direction_is_no_vector(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="vector"):
        to_vector(numbers)


@given(st.lists(st.text(max_size=9), max_size=30), st.integers(1, 5), st.integers(1, 20))
def test_batches_hold_all_texts_in_order_within_their_bounds(texts: list[str], count: int, characters: int) -> None:
    batches = list(text_batches(texts, BatchBounds(count, characters)))
    assert [text for batch in batches for text in batch] == texts
    assert all(1 <= len(batch) <= count for batch in batches)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= characters for batch in batches)


def test_batches_are_as_large_as_they_may_be() -> None:
    assert [len(each) for each in text_batches(["ab"] * 7, BatchBounds(3, 100))] == [3, 3, 1]
    assert [len(each) for each in text_batches(["ab"] * 7, BatchBounds(9, 5))] == [2, 2, 2, 1]


@pytest.mark.parametrize(
    "other",
    [
        ConfiguredEmbedder(model="large"),
        ConfiguredEmbedder(model="small", query=TextForm(prefix="query: ")),
        ConfiguredEmbedder(model="small", passage=TextForm(prefix="query: ")),
        ConfiguredEmbedder(model="small", query=TextForm(input_type="query: ")),
        ConfiguredEmbedder(model="small", passage=TextForm(input_type="query: ")),
        ConfiguredEmbedder(model="small", query=TextForm(prefix="query"), passage=TextForm(prefix=": ")),
    ],
)
def test_what_changes_vectors_changes_their_name(other: ConfiguredEmbedder) -> None:
    assert other.stored_name != PLAIN.stored_name
    assert PLAIN.stored_name == ConfiguredEmbedder(model="small").stored_name
    assert PLAIN.stored_name.startswith("small#")


def test_each_kind_of_text_has_its_form() -> None:
    told = ConfiguredEmbedder(model="small", query=TextForm(prefix="q"), passage=TextForm(prefix="p"))
    assert [told.form_of(kind).prefix for kind in (TextKind.QUERY, TextKind.PASSAGE)] == ["q", "p"]
