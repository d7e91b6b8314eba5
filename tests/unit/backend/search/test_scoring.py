"""The best chunks are scored as one by one, whatever is left out on the way."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from backend.search.domain.bm25 import Scorer, Statistics, plan
from backend.search.sql.scoring import SearchedPlaces, find_led, score_best
from backend.search.sql.word_postings import WordPostings, join_short

LIMIT = 10
WORDS = [f"w{number}" for number in range(14)]


def write_chunks(dice: random.Random, count: int) -> list[dict[str, int]]:
    """Write chunks: the first words stand in nearly all of them, the last in few; many are alike."""
    return [
        {word: dice.choice((1, 1, 1, 2, 300)) for place, word in enumerate(WORDS) if dice.random() < 0.9 / (place + 1)}
        for _ in range(count)
    ]


def cut(chunks: Sequence[dict[str, int]], word: str, starts: Sequence[int]) -> list[WordPostings]:
    """Return the postings of a word in parts, which begin at these places."""
    parts: list[WordPostings] = []
    for start, end in zip(starts, (*starts[1:], len(chunks)), strict=True):
        found = [(place - start, chunks[place][word]) for place in range(start, end) if word in chunks[place]]
        if found:
            numbers, counts = zip(*found, strict=True)
            kind = np.uint16 if start else np.int64
            parts.append(WordPostings(start, np.array(numbers, kind), np.array(counts, np.uint16)))
    return parts


@pytest.mark.parametrize("asked", [WORDS, WORDS[:1], WORDS[3:], WORDS[-1:], [*WORDS[:2], *WORDS[-2:]]])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_have_the_scores_that_each_has_by_itself(asked: list[str], seed: int) -> None:
    dice = random.Random(seed)
    chunks = write_chunks(dice, 2_000)
    lengths = [sum(chunk.values()) for chunk in chunks]
    counts = {word: sum(word in chunk for chunk in chunks) for word in asked}
    statistics = Statistics(chunk_count=len(chunks), token_count=sum(lengths), chunk_counts=counts)
    query = plan(asked, statistics)
    words = {word: cut(chunks, word, (0, 700, 1_500)) for word in query.terms}
    places = find_led(words, query.leading, len(chunks))
    assert places.tolist() == [place for place, chunk in enumerate(chunks) if chunk.keys() & set(query.leading)]
    found = score_best(words, (places, np.array(lengths)[places]), query, statistics, LIMIT)
    scorer = Scorer(query, statistics)
    exact = {place: scorer.score(chunks[place], lengths[place]) for place in map(int, places)}
    scored = dict(zip(found.places.tolist(), found.scores.tolist(), strict=True))
    assert {place: exact[place] for place in scored} == scored
    least = sorted(exact.values(), reverse=True)[:LIMIT][-1]
    assert {place for place, score in exact.items() if score >= least} <= scored.keys()


def test_chunks_that_cannot_be_among_the_best_are_left_out() -> None:
    chunks = write_chunks(random.Random(5), 2_000)
    counts = {word: sum(word in chunk for chunk in chunks) for word in WORDS}
    statistics = Statistics(chunk_count=len(chunks), token_count=10_000, chunk_counts=counts)
    query = plan(WORDS, statistics)
    words = {word: cut(chunks, word, (0,)) for word in query.terms}
    places = find_led(words, query.leading, len(chunks))
    found = score_best(words, (places, np.full(len(places), 5)), query, statistics, LIMIT)
    assert len(found.places) < len(places) / 2


def test_few_postings_are_looked_up_among_many_chunks() -> None:
    searched = SearchedPlaces(np.arange(0, 4_000, 2))
    part = WordPostings(101, np.array([0, 3, 5, 9_000], np.uint16), np.array([1, 2, 300, 4], np.uint16))
    times = searched.find_times([part])
    assert {int(searched.places[at]): int(times[at]) for at in np.flatnonzero(times)} == {104: 2, 106: 300}


def test_short_parts_of_postings_become_one_and_hold_the_same() -> None:
    sizes = {0: 3, 10: 5_000, 6_000: 1, 7_000: 2_500, 9_900: 7}
    parts = [
        WordPostings(start, np.arange(size, dtype=np.uint16), np.full(size, size % 300, np.uint16))
        for start, size in sizes.items()
    ]
    joined = join_short(parts)
    assert [len(part.numbers) for part in joined] == [11, 5_000, 2_500]
    held, expected = (
        sorted(pair for part in some for pair in zip(part.places().tolist(), part.counts.tolist(), strict=True))
        for some in (joined, parts)
    )
    assert held == expected
