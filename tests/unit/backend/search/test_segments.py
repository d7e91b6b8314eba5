"""Packed segments give back what was indexed, merged or not."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.domain.chunks import Range
from backend.search.sql.merging import MERGED_AT_ONCE, Slice, choose_to_merge, merge_lengths, merge_pages
from backend.search.sql.segment_rows import IndexSegment, PackedSegment
from backend.search.sql.segments import (
    lengths_in,
    pack_segment,
    page_key,
    unpack_page,
    word_hashes,
)
from backend.search.sql.word_postings import inside

WORDS = ["a", "rhine", "漢字", "antidisestablishmentarianism", "b" * 64, "antidisestablishment"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHUNKS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9), max_size=12)


def found_in(pages: dict[int, bytes], bits: int, word: str) -> dict[int, int]:
    (hashed,) = word_hashes([word]).tolist()
    found = unpack_page(pages.get(page_key(0, bits, hashed), b"")).find(hashed)
    return dict(zip(found[0].tolist(), found[1].tolist(), strict=True)) if found is not None else {}


def expected_of(chunks: Sequence[Sequence[str]], word: str) -> dict[int, int]:
    return {number: tokens.count(word) for number, tokens in enumerate(chunks) if word in tokens}


@given(CHUNKS)
def test_a_segment_holds_each_word_of_each_chunk(chunks: list[list[str]]) -> None:
    segment = pack_segment(chunks)
    assert lengths_in(segment.lengths).tolist() == [len(tokens) for tokens in chunks]
    assert segment.token_count == sum(map(len, chunks))
    for word in [*WORDS, "nowhere"]:
        assert found_in(dict(segment.pages), segment.bits, word) == expected_of(chunks, word)


def test_words_that_stand_very_often_are_counted_exactly() -> None:
    chunks = [["a"] * 254, ["a"] * 255, ["a", *["b"] * 300], ["a"] * 800, ["a"] * 3]
    segment = pack_segment(chunks)
    for word in ("a", "b"):
        assert found_in(dict(segment.pages), segment.bits, word) == expected_of(chunks, word)


def test_a_hash_does_not_depend_on_the_words_beside_it() -> None:
    together = dict(zip(WORDS, word_hashes(WORDS).tolist(), strict=True))
    assert {word: int(word_hashes([word])[0]) for word in WORDS} == together
    assert len(set(together.values())) == len(WORDS)


@given(CHUNKS, CHUNKS, st.integers(0, 5), st.integers(0, 20), st.integers(0, 3))
def test_merged_segments_hold_what_both_held_and_is_not_gone(
    first: list[list[str]], second: list[list[str]], gap: int, lost: int, bits: int
) -> None:
    parts: list[tuple[int, PackedSegment]] = [
        (100, pack_segment(first)),
        (100 + len(first) + gap, pack_segment(second)),
    ]
    gone = [Range(100 + lost, 102 + lost)]
    pages = {
        place: page
        for slice_place in range(1 << bits)
        for place, page in merge_pages(
            [(start, list(segment.pages.values())) for start, segment in parts],
            gone,
            Slice(slice_place, bits),
            (100, 5),
        ).items()
    }
    together = [*first, *([[]] * gap), *second]
    kept = [[] if lost <= number < lost + 2 else tokens for number, tokens in enumerate(together)]
    for word in WORDS:
        assert found_in(pages, 5, word) == expected_of(kept, word)
    numbers = Range(100, 100 + len(together))
    lengths, size = merge_lengths([(start, segment.lengths) for start, segment in parts], numbers, gone)
    assert lengths_in(lengths).tolist() == [len(tokens) for tokens in kept]
    assert size == sum(map(bool, kept))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=6), st.lists(st.integers(0, 45), max_size=9))
def test_numbers_lie_in_ranges_or_outside(spans: list[tuple[int, int]], numbers: list[int]) -> None:
    ranges = [Range(first, first + length) for first, length in spans]
    expected = [any(first <= number < end for first, end in ranges) for number in numbers]
    assert inside(np.array(numbers, np.int64), ranges).tolist() == expected


def sized(*sizes: int) -> list[IndexSegment]:
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        IndexSegment(n, "kb", start, start + size, size, 3, NOW)
        for n, (start, size) in enumerate(zip(starts, sizes, strict=False))
    ]


@pytest.mark.parametrize(
    ("sizes", "gone", "chosen"),
    [
        ([1], [], []),
        ([1] * 7, [], list(range(7))),
        ([1] * 100, [], list(range(64))),
        ([4, 2, 1], [], []),
        ([4, 2, 1, 1], [], [0, 1, 2, 3]),
        ([1, 1, 100], [], [0, 1]),
        ([500, 9, 9, 500, 9], [], [1, 2]),
        ([127, 127], [], [0, 1]),
        ([128] * 7, [], []),
        ([128] * 9, [], list(range(MERGED_AT_ONCE))),
        ([600, *[300] * 8], [], list(range(1, 9))),
        ([6_000] * 9, [], list(range(MERGED_AT_ONCE))),
        ([16_384] * 3, [], []),
        ([16_384] * 4, [], [0, 1, 2]),
        ([32_767] * 3, [], [0, 1]),
        ([40_000] * 9, [], []),
        ([200, 200], [Range(210, 250)], []),
        ([200, 200], [Range(210, 270)], [1]),
    ],
)
def test_neighbours_of_a_size_are_merged_and_what_lost_much_is_written_anew(
    sizes: list[int], gone: list[Range], chosen: list[int]
) -> None:
    assert [one.id for one in choose_to_merge(sized(*sizes), gone)] == chosen
