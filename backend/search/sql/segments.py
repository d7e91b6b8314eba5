"""Segments: the search index of some chunks, packed for storage.

A segment covers chunks whose numbers lie in a stretch of at most `MAX_SPAN`. Its postings are sorted by the hash of
their words and divided by the first bits of the hash into pages, the units that are stored and read. A page names its
words by 64-bit hashes: that two words of a base share one is as good as impossible, and a hash takes less room than
a word.

A page, little-endian: the numbers of words, postings and large counts (3 × u4); of each word its hash (u8), then of
each word how many chunks have it (u2); of each posting the number of its chunk within the segment (u2), then of each
how often the word stands there (u1, or 255 where a large count tells); of each large count the posting (u4), then the
count (u2).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.search.domain.tokenizing import tokenize_indexed
from backend.search.sql.segment_rows import PackedSegment
from backend.search.sql.tables import PAGE_BITS
from backend.search.sql.word_postings import Numbers

MAX_SPAN = 0xFFFF
PAGE_BYTES = 1_800
"""The wished size of a page: PostgreSQL keeps a row of up to 2 kB in one piece."""

_HASH, _NUMBER, _LARGE = np.dtype("<u8"), np.dtype("<u2"), np.dtype("<u4")
_SIZES = Struct("<3I")
_HEAD_BYTES = _SIZES.size
_WORD_BYTES = _HASH.itemsize + _NUMBER.itemsize
_POSTING_BYTES = _NUMBER.itemsize + 1
_ESCAPE = 0xFF
_MOST = 0xFFFF
"""Larger counts and lengths are stored as this; a chunk of 400 tokens has some hundreds."""

_HASH_BITS = 64
_MIXERS = np.array((0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), np.uint64)
"""Odd constants of SplitMix64 (https://prng.di.unimi.it/splitmix64.c)."""

MAX_BITS = 20


class Postings(NamedTuple):
    """Postings in three columns, sorted by the hash of the word, then by the number of the chunk."""

    hashes: NDArray[np.uint64]
    numbers: Numbers
    counts: NDArray[np.unsignedinteger[Any]]


def word_hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes by which pages name words; words of up to eight bytes never share one.

    Eight bytes of every word are mixed in at a time. A word that has ended is left as it is, so that its hash does not
    depend on the words beside it.
    """
    if not words:
        return np.empty(0, np.uint64)
    encoded = np.array([word.encode() for word in words], dtype=np.bytes_)
    width = -(-encoded.dtype.itemsize // _HASH.itemsize) * _HASH.itemsize
    columns = encoded.astype(f"S{width}").view(_HASH).reshape(len(words), -1)
    hashes = np.zeros(len(words), np.uint64)
    for column in columns.T:
        mixed = (hashes ^ column) * _MIXERS[0]
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIXERS[1]
        hashes = np.where(column, mixed ^ (mixed >> np.uint64(29)), hashes)
    return hashes


def page_key(segment_id: int, bits: int, hashed: int) -> int:
    """Return the key of the row of a word's page, in a segment whose pages are divided by so many bits."""
    return (segment_id << PAGE_BITS) + (hashed >> (_HASH_BITS - bits))


def pack_segment(token_lists: Sequence[Sequence[str]], further: Sequence[Sequence[str]] = ()) -> PackedSegment:
    """Index chunks, given the index tokens of each, under the numbers 0, 1, 2 …

    Further tokens are found as well, and count to no length. One integer for each token combines the number of its word
    and the index of its chunk; sorted and counted, these integers give the postings of one word after another.
    """
    words = defaultdict[str, int](count().__next__)
    pairs = zip(token_lists, further, strict=True) if further else ()
    held = [[*tokens, *others] for tokens, others in pairs] or token_lists
    of_tokens = [words[token] for tokens in held for token in tokens]
    lengths = np.array([len(tokens) for tokens in token_lists], np.int64)
    chunks = np.repeat(np.arange(len(held)), [len(tokens) for tokens in held])
    hashes = word_hashes(list(words))
    order = np.argsort(hashes)
    places = np.empty(len(words), np.int64)
    places[order] = np.arange(len(words))
    chunk_count = max(len(token_lists), 1)
    keys = places[np.array(of_tokens, np.int64)] * chunk_count + chunks
    distinct, counts = np.unique(keys, return_counts=True)
    word_places, numbers = np.divmod(distinct, chunk_count)
    postings = Postings(hashes[order][word_places], numbers, np.minimum(counts, _MOST).astype(np.uint16))
    bits = bits_for(len(words), len(distinct))
    return PackedSegment(bits, pack_lengths(lengths), pages_of(postings, bits), int(lengths.sum()))


def pack_texts(texts: Iterable[str]) -> PackedSegment:
    """Index what successive chunks are found by, at most `CHUNKS_AT_ONCE`; one that is gone has an empty text."""
    found = [tokenize_indexed(text) for text in texts]
    return pack_segment([one.tokens for one in found], [one.further for one in found])


def pack_lengths(lengths: Numbers) -> bytes:
    """Pack the lengths of chunks in index tokens."""
    return np.minimum(lengths, _MOST).astype(_NUMBER).tobytes()


def lengths_in(packed: bytes) -> NDArray[np.uint16]:
    """Read packed lengths."""
    return np.frombuffer(packed, _NUMBER)


def bits_for(word_count: int, posting_count: int) -> int:
    """Return by how many bits of the hash to divide a segment, so that its pages have about the wished size."""
    size = word_count * _WORD_BYTES + posting_count * _POSTING_BYTES
    return min(MAX_BITS, (size // PAGE_BYTES).bit_length())


def bits_of_pages(page_count: int) -> int:
    """Return by how many bits to divide a segment that is merged of so many pages; merged, postings take less room."""
    return min(MAX_BITS, (page_count * 3 // 5).bit_length())


def pages_of(postings: Postings, bits: int) -> dict[int, bytes]:
    """Pack postings, whose numbers lie within the segment, into its pages."""
    if not len(postings.hashes):
        return {}
    starts = _starts(postings.hashes)
    words = postings.hashes[starts]
    keys = words >> np.uint64(_HASH_BITS - bits) if bits else np.zeros(len(words), np.uint64)
    cuts = np.append(_starts(keys), len(words))
    starts = np.append(starts, len(postings.hashes))
    numbers, counts = postings.numbers.astype(_NUMBER), postings.counts
    return {
        int(keys[first]): _page(
            words[first:end],
            np.diff(starts[first : end + 1]),
            numbers[starts[first] : starts[end]],
            counts[starts[first] : starts[end]],
        )
        for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    }


def _page(
    words: NDArray[np.uint64],
    chunk_counts: Numbers,
    numbers: NDArray[np.uint16],
    counts: NDArray[np.unsignedinteger[Any]],
) -> bytes:
    large = np.flatnonzero(counts >= _ESCAPE)
    return b"".join(
        (
            _SIZES.pack(len(words), len(numbers), len(large)),
            words.astype(_HASH).tobytes(),
            chunk_counts.astype(_NUMBER).tobytes(),
            numbers.tobytes(),
            np.minimum(counts, _ESCAPE).astype(np.uint8).tobytes(),
            large.astype(_LARGE).tobytes(),
            counts[large].astype(_NUMBER).tobytes(),
        )
    )


def postings_in(page: bytes) -> Postings:
    """Read the postings of all words of a page."""
    read = unpack_page(page)
    hashes, chunk_counts = np.asarray(read.hashes), np.diff(np.asarray(read.ends), prepend=0)
    return Postings(np.repeat(hashes, chunk_counts), read.numbers.astype(np.int64), read.counts)


class ReadPage(NamedTuple):
    """A page that words are looked up in: its words' hashes, where the postings of each end, and all postings."""

    hashes: Sequence[int]
    ends: Sequence[int]
    numbers: NDArray[np.uint16]
    counts: NDArray[np.unsignedinteger[Any]]

    def find(self, hashed: int) -> tuple[NDArray[np.uint16], NDArray[np.unsignedinteger[Any]]] | None:
        """Return the numbers of the chunks that have a word, and how often each has it; None where none has it."""
        place = bisect_left(self.hashes, hashed)
        if place == len(self.hashes) or self.hashes[place] != hashed:
            return None
        its = slice(self.ends[place - 1] if place else 0, self.ends[place])
        return self.numbers[its], self.counts[its]


def unpack_page(page: bytes) -> ReadPage:
    """Read a page, which may be empty, without copying what it holds."""
    if not page:
        return _EMPTY_PAGE
    words, postings, large_count = _SIZES.unpack_from(page)
    # Single numbers are read from a view faster than from an array.
    hashes = memoryview(page)[_HEAD_BYTES : _HEAD_BYTES + words * _HASH.itemsize].cast("Q")
    chunk_counts = np.frombuffer(page, _NUMBER, words, _HEAD_BYTES + words * _HASH.itemsize)
    start = _HEAD_BYTES + words * _WORD_BYTES
    numbers = np.frombuffer(page, _NUMBER, postings, start)
    start += postings * _NUMBER.itemsize
    counts: NDArray[np.unsignedinteger[Any]] = np.frombuffer(page, np.uint8, postings, start)
    if large_count:
        counts = counts.astype(np.uint16)
        start += postings
        large = np.frombuffer(page, _LARGE, large_count, start)
        counts[large] = np.frombuffer(page, _NUMBER, large_count, start + large_count * _LARGE.itemsize)
    return ReadPage(hashes, chunk_counts.cumsum(dtype=np.uint32).data, numbers, counts)


_EMPTY_PAGE = ReadPage((), (), np.empty(0, np.uint16), np.empty(0, np.uint8))


def join(parts: Iterable[Postings]) -> Postings:
    """Join postings of segments in the order of their numbers into one."""
    columns = list(zip(*parts, strict=True))
    if not columns:
        return Postings(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint16))
    hashes, numbers, counts = (np.concatenate(column) for column in columns)
    order = np.argsort(hashes, kind="stable")
    return Postings(hashes[order], numbers[order], counts[order])


def _starts(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return where each run of equal values begins."""
    return np.concatenate((np.zeros(1, np.intp), np.flatnonzero(np.diff(values)) + 1))
