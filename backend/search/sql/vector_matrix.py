"""Finding the nearest vectors on SQLite: all vectors of the searched bases are compared, in memory.

There a vector is an outline, a byte for each number, from which a score is known within bounds. Of the few that may be
among the nearest the stored vectors are read: what is found is what a comparison of all stored vectors would find.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import Connection

from backend.foundation.sql.statements import driver_of
from backend.search.domain.chunks import Found, Range
from backend.search.sql.vector_search import NeighbourQuery, SearchedSpace
from backend.search.sql.word_postings import Numbers, inside

_STEPS = 127
_BYTES_BESIDE = 16
_NUMBERS_AT_ONCE = 262_144
"""So few that BLAS multiplies them in the thread of the caller: threads of its own wait for each other, which on a busy
machine takes ten times as long as the product; and that what is multiplied stays in the cache of a core."""

_ROUNDING = 1e-5
"""What the arithmetic itself may add to a product of vectors of length 1, in which single precision is used."""

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Outlines:
    """Outlines of vectors: `steps` times `scales` is each of them but for a rest, whose length is its `errors`.

    A product with a vector of length 1 is thereby wrong by no more than that (Cauchy and Schwarz).
    """

    numbers: Numbers
    steps: NDArray[np.int8]
    scales: _Floats
    errors: _Floats

    @staticmethod
    def bytes_of(count: int, dimension: int) -> int:
        """Return how much so many vectors take."""
        return count * (dimension + _BYTES_BESIDE)

    @property
    def size(self) -> int:
        """The bytes that these take."""
        return self.bytes_of(*self.steps.shape)

    def scores(self, vector: _Floats) -> _Floats:
        """Return the product of each outline with a vector."""
        count, dimension = self.steps.shape
        rows = max(1, _NUMBERS_AT_ONCE // dimension)
        scores, some = np.empty(count, np.float32), np.empty((min(rows, count), dimension), np.float32)
        for first in range(0, count, rows):
            end = min(first + rows, count)
            np.copyto(some[: end - first], self.steps[first:end])
            np.dot(some[: end - first], vector, out=scores[first:end])
        return scores * self.scales

    def only(self, staying: NDArray[np.bool_]) -> "Outlines":
        """Return some of them."""
        return Outlines(self.numbers[staying], self.steps[staying], self.scales[staying], self.errors[staying])


def outlines_of(numbers: Numbers, vectors: _Floats) -> Outlines:
    """Return the outlines of vectors, each a row."""
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _STEPS
    steps = np.rint(vectors / scales[:, None])
    rests = vectors - steps * scales[:, None]
    errors = np.sqrt(np.einsum("ij,ij->i", rests, rests)) + _ROUNDING
    return Outlines(numbers, steps.astype(np.int8), scales.astype(np.float32), errors.astype(np.float32))


def join_outlines(parts: Sequence[Outlines]) -> Outlines:
    """Return the outlines of all parts as one."""
    return Outlines(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.errors for part in parts]),
    )


MOST_BYTES = 128 * 1024 * 1024
"""Outlines in memory; what was searched longest ago makes room. A base with more is read anew by each search."""

_ROWS_AT_ONCE = 4096
_MOST_PARTS = 8
_READ = """
    SELECT id, number, vector FROM search_vector
    WHERE space_id = ? AND id > ? AND vector IS NOT NULL ORDER BY id LIMIT ?
"""
_READ_NUMBERED = """
    SELECT number, vector FROM search_vector
    WHERE space_id = ? AND number IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL
"""
_NUMBERS = "SELECT number FROM search_vector WHERE space_id = ?"
_Scores = NDArray[np.float32]


@dataclass
class _Loaded:
    """The outlines of a space as it was after so many removals, up to the row `last_id`."""

    removals: int
    last_id: int = 0
    parts: list[Outlines] = field(default_factory=list[Outlines])
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


class _Bounds(NamedTuple):
    """Between which scores each of some vectors of a space lies."""

    numbers: Numbers
    least: _Scores
    most: _Scores


class MatrixVectors:
    """`NearestVectors` over outlines that are read once, and then with what has been added."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._loaded: OrderedDict[int, _Loaded] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def bytes_in_memory(self) -> int:
        """How much the outlines take that are kept."""
        with self._lock:
            return sum(one.size for one in self._loaded.values())

    def nearest(self, connection: Connection, spaces: Sequence[SearchedSpace], asked: NeighbourQuery) -> list[Found]:
        """Compare all vectors of these spaces."""
        vector = np.frombuffer(asked.vector, np.float32)
        bounds = [
            (space, _bounds(part, vector, None if asked.allowed is None else asked.allowed[space.base_id]))
            for space in spaces
            for part in self._parts(connection, space)
        ]
        least = _greatest(np.concatenate([each.least for _, each in bounds]), asked.limit) if bounds else 0.0
        found: list[Found] = []
        for space in spaces:
            may_be = [each.numbers[each.most >= least] for of_space, each in bounds if of_space is space]
            if may_be:
                found += _score(connection, space, np.concatenate(may_be), vector)
        return sorted(found, key=lambda one: (-one.score, one.base_id, one.number))[: asked.limit]

    def _parts(self, connection: Connection, space: SearchedSpace) -> Iterable[Outlines]:
        if Outlines.bytes_of(space.chunk_count, space.dimension) > self._most_bytes:
            return (part for part, _ in _read_parts(connection, space, 0))
        with self._lock:
            loaded = self._loaded.setdefault(space.id, _Loaded(space.removals))
            self._loaded.move_to_end(space.id)
        with loaded.lock:
            if loaded.removals != space.removals:
                _forget_removed(connection, space, loaded)
            _read_added(connection, space, loaded)
            if len(loaded.parts) > _MOST_PARTS:
                loaded.parts = [join_outlines(loaded.parts)]
            parts = list(loaded.parts)
        self._make_room()
        return parts

    def _make_room(self) -> None:
        with self._lock:
            size = sum(one.size for one in self._loaded.values())
            while size > self._most_bytes and self._loaded:
                size -= self._loaded.popitem(last=False)[1].size


def _bounds(part: Outlines, vector: _Scores, allowed: Sequence[Range] | None) -> _Bounds:
    scores, errors, numbers = part.scores(vector), part.errors, part.numbers
    if allowed is not None:
        passes = inside(numbers, allowed)
        scores, errors, numbers = scores[passes], errors[passes], numbers[passes]
    return _Bounds(numbers, scores - errors, scores + errors)


def _greatest(scores: _Scores, place: int) -> float:
    """Return the score at this place from the greatest, below all where there are not so many."""
    return float(np.partition(scores, -place)[-place]) if len(scores) > place else -np.inf


def _score(connection: Connection, space: SearchedSpace, numbers: Numbers, vector: _Scores) -> Iterator[Found]:
    asked = (space.id, orjson.dumps(numbers.tolist()).decode())
    rows = driver_of(connection).execute(_READ_NUMBERED, asked).fetchall()
    scores = _decode_stored([row[1] for row in rows], space.dimension) @ vector
    for row, score in zip(rows, scores.tolist(), strict=True):
        yield Found(space.base_id, row[0], round(score, 6))


def _decode_stored(vectors: Sequence[bytes], dimension: int) -> _Scores:
    return np.frombuffer(b"".join(vectors), "<f2").reshape(len(vectors), dimension).astype(np.float32)


def _read_parts(connection: Connection, space: SearchedSpace, last_id: int) -> Iterator[tuple[Outlines, int]]:
    """Yield the vectors behind an id, with the last id of each part."""
    while found := driver_of(connection).execute(_READ, (space.id, last_id, _ROWS_AT_ONCE)).fetchall():
        last_id = found[-1][0]
        vectors = _decode_stored([row[2] for row in found], space.dimension)
        yield outlines_of(np.array([row[1] for row in found], np.int64), vectors), last_id


def _read_added(connection: Connection, space: SearchedSpace, loaded: _Loaded) -> None:
    for part, last_id in _read_parts(connection, space, loaded.last_id):
        loaded.parts.append(part)
        loaded.last_id = last_id


def _forget_removed(connection: Connection, space: SearchedSpace, loaded: _Loaded) -> None:
    rows = driver_of(connection).execute(_NUMBERS, (space.id,)).fetchall()
    there = np.array([row[0] for row in rows], np.int64)
    loaded.parts = [part.only(np.isin(part.numbers, there)) for part in loaded.parts]
    loaded.removals = space.removals
