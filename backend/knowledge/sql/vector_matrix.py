"""Finding the nearest vectors on SQLite: all vectors of a base are compared, in memory."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from backend.foundation.sql.statements import driver_of
from backend.knowledge.sql.search_index import Range
from backend.knowledge.sql.vector_search import NeighbourQuery, SearchedSpace
from backend.knowledge.sql.word_postings import Numbers, inside

MOST_BYTES = 128 * 1024 * 1024
"""Vectors in memory; what was searched longest ago makes room. A base with more is read anew by each search."""

_ROWS_AT_ONCE = 4096
_MOST_PARTS = 8
_READ = """
    SELECT id, number, vector FROM search_vector
    WHERE space_id = ? AND id > ? AND vector IS NOT NULL ORDER BY id LIMIT ?
"""
_NUMBERS = "SELECT number FROM search_vector WHERE space_id = ?"
Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class _Part:
    numbers: Numbers
    matrix: Matrix


@dataclass
class _Loaded:
    removals: int
    last_id: int = 0
    parts: list[_Part] = field(default_factory=list[_Part])

    @property
    def size(self) -> int:
        return sum(part.matrix.nbytes + part.numbers.nbytes for part in self.parts)


class MatrixVectors:
    """`NearestVectors` over matrices that are read once, and then with what has been added."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._loaded: OrderedDict[int, _Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def nearest(
        self,
        connection: Connection,
        space: SearchedSpace,
        asked: NeighbourQuery,
    ) -> list[tuple[int, float]]:
        """Compare all vectors of a space."""
        vector = np.frombuffer(asked.vector, np.float32)
        is_kept = space.chunk_count * space.dimension * vector.itemsize <= self._most_bytes
        parts = self._parts(connection, space) if is_kept else _read_parts(connection, space, 0)
        found = [_best(part, vector, asked.limit, asked.allowed) for part, _ in parts]
        ranked = sorted((one for some in found for one in some), key=lambda one: (-one[1], one[0]))
        return ranked[: asked.limit]

    def _parts(self, connection: Connection, space: SearchedSpace) -> Iterable[tuple[_Part, int]]:
        with self._lock:
            loaded = self._loaded.pop(space.id, None) or _Loaded(space.removals)
            if loaded.removals != space.removals:
                _forget_removed(connection, space, loaded)
            _read_added(connection, space, loaded)
            if len(loaded.parts) > _MOST_PARTS:
                loaded.parts = [_joined(loaded.parts)]
            self._loaded[space.id] = loaded
            size = sum(one.size for one in self._loaded.values())
            while size > self._most_bytes and self._loaded:
                size -= self._loaded.popitem(last=False)[1].size
            return [(part, 0) for part in loaded.parts]


def _best(part: _Part, vector: Matrix, limit: int, allowed: Sequence[Range] | None) -> list[tuple[int, float]]:
    scores = part.matrix @ vector
    numbers = part.numbers
    if allowed is not None:
        passes = inside(numbers, allowed)
        scores, numbers = scores[passes], numbers[passes]
    if len(scores) > limit:
        places = np.argpartition(scores, -limit)[-limit:]
        scores, numbers = scores[places], numbers[places]
    return [(number, round(score, 6)) for number, score in zip(numbers.tolist(), scores.tolist(), strict=True)]


def _read_parts(connection: Connection, space: SearchedSpace, last_id: int) -> Iterator[tuple[_Part, int]]:
    """Yield the vectors behind an id, with the last id of each part."""
    while found := driver_of(connection).execute(_READ, (space.id, last_id, _ROWS_AT_ONCE)).fetchall():
        halves = np.frombuffer(b"".join([row[2] for row in found]), "<f2")
        matrix = halves.reshape(len(found), space.dimension).astype(np.float32)
        last_id = found[-1][0]
        yield _Part(np.array([row[1] for row in found], np.int64), matrix), last_id


def _read_added(connection: Connection, space: SearchedSpace, loaded: _Loaded) -> None:
    for part, last_id in _read_parts(connection, space, loaded.last_id):
        loaded.parts.append(part)
        loaded.last_id = last_id


def _forget_removed(connection: Connection, space: SearchedSpace, loaded: _Loaded) -> None:
    rows = driver_of(connection).execute(_NUMBERS, (space.id,)).fetchall()
    there = np.array([row[0] for row in rows], np.int64)
    staying = [(part, np.isin(part.numbers, there)) for part in loaded.parts]
    loaded.parts = [_Part(part.numbers[stays], part.matrix[stays]) for part, stays in staying]
    loaded.removals = space.removals


def _joined(parts: Sequence[_Part]) -> _Part:
    return _Part(np.concatenate([part.numbers for part in parts]), np.concatenate([part.matrix for part in parts]))
