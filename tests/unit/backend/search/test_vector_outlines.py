"""Outlines of vectors: their products are as near to the true ones as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backend.search.sql.vector_matrix import Outlines, join_outlines, outlines_of
from tests.examples import examples

Rows = NDArray[np.float32]


def unit_rows(seed: int, count: int, dimension: int, power: int) -> Rows:
    """Return vectors of length 1; the higher the power, the more of each lies in a few of its numbers."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension)) ** power
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def outlined(rows: Rows) -> Outlines:
    return outlines_of(np.arange(len(rows)), rows)


@examples(100)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 31, 384, 1536]), st.sampled_from([1, 3, 9]))
def test_a_product_is_wrong_by_no_more_than_its_error(seed: int, dimension: int, power: int) -> None:
    rows, question = unit_rows(seed, 300, dimension, power), unit_rows(seed + 1, 1, dimension, power)[0]
    found = outlined(rows)
    wrong = np.abs(found.scores(question).astype(np.float64) - rows.astype(np.float64) @ question)
    assert (wrong <= found.errors).all()


def test_errors_are_small_enough_to_leave_few_vectors_in_question() -> None:
    assert outlined(unit_rows(1, 100, 384, 1)).errors.max() < 0.015


def test_a_vector_without_a_direction_has_the_score_0() -> None:
    found = outlined(np.zeros((1, 8), np.float32))
    assert found.scores(unit_rows(1, 1, 8, 1)[0]).tolist() == [0.0]


@pytest.mark.parametrize("count", [0, 1, 5_000])
def test_parts_joined_have_the_scores_of_the_parts(count: int) -> None:
    rows, question = unit_rows(2, count + 3, 64, 1), unit_rows(3, 1, 64, 1)[0]
    joined = join_outlines([outlined(rows[:count]), outlined(rows[count:])]) if count else outlined(rows)
    assert np.allclose(joined.scores(question), rows @ question, atol=0.03)
    assert joined.size == Outlines.bytes_of(count + 3, 64) == joined.steps.nbytes + 16 * (count + 3)


def test_only_some_are_kept() -> None:
    rows = unit_rows(4, 10, 16, 1)
    kept = outlined(rows).only(np.arange(10) >= 7)
    assert kept.numbers.tolist() == [7, 8, 9]
    assert np.allclose(kept.scores(rows[8])[1], 1.0, atol=0.01)
