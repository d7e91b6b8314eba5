"""Runs that two texts share."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from shared.plain_text.normal_form import words
from shared.plain_text.runs import RunIndex, foreign_length, longest_foreign_run, runs_of

_texts = st.lists(st.sampled_from("abc"), max_size=12)


def test_runs_are_in_order_and_none_of_a_short_text():
    assert list(runs_of(list("abcd"), 3)) == [("a", "b", "c"), ("b", "c", "d")]
    assert list(runs_of(list("ab"), 3)) == []


def test_no_run_goes_from_one_text_into_the_next():
    index = RunIndex.of(2, [["a", "b"], ["c", "d"]])
    assert index.holds(("a", "b"))
    assert not index.holds(("b", "c"))


def test_overlapping_runs_are_one_span():
    index = RunIndex.of(2, ["abc", "xy"])
    assert index.find_shared("zabcxyz") == [(1, 4), (4, 6)]


@given(_texts, _texts, st.integers(1, 4))
def test_exactly_the_shared_runs_are_covered(theirs: list[str], ours: list[str], length: int):
    covered = {
        position
        for start in range(len(ours) - length + 1)
        if any(ours[start : start + length] == theirs[at : at + length] for at in range(len(theirs) - length + 1))
        for position in range(start, start + length)
    }
    spans = RunIndex.of(length, [theirs]).find_shared(ours)
    assert {position for span in spans for position in range(*span)} == covered
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))


def test_what_the_reader_wrote_does_not_count():
    assert foreign_length((2, 10), [(0, 4), (8, 20)]) == 4
    chunk = words("the quick brown fox jumps over the lazy dog")
    said = chunk[1:5]
    theirs = RunIndex.of(3, [chunk])
    assert longest_foreign_run(chunk, theirs, RunIndex.of(3, [said])) == 5
    assert longest_foreign_run(chunk, theirs, RunIndex(3)) == 9
    assert longest_foreign_run(["quite", "other"], theirs, RunIndex(3)) == 0
