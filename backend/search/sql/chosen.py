"""The search index and its upkeep, loaded at their first use: they need NumPy, which takes memory and time to load."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from backend.foundation.sql.database import Database
from backend.search.domain.chunks import Chunk
from backend.search.sql.segment_rows import PackedSegment
from backend.search.sql.vector_search import IndexedVectors, NearestVectors
from shared.clock import Clock

if TYPE_CHECKING:
    from backend.search.sql.reindexing import Reindexing
    from backend.search.sql.segment_index import SegmentIndex
    from backend.search.sql.upkeep import IndexUpkeep


Loaded = TypeVar("Loaded")


class LoadedOnce(Generic[Loaded]):
    """What the first call loads, in a thread."""

    def __init__(self, load: Callable[[], Loaded]) -> None:
        self._load = load
        self._loaded: Loaded | None = None

    async def __call__(self) -> Loaded:
        """Return it."""
        if self._loaded is None:
            self._loaded = await asyncio.to_thread(self._load)
        return self._loaded


def choose_index(database: Database) -> "LoadedOnce[SegmentIndex]":
    """Return the index of words for a database."""
    return LoadedOnce(partial(_index_for, database.dialect))


def _index_for(dialect: str) -> "SegmentIndex":
    from backend.search.sql.segment_index import SegmentIndex

    return SegmentIndex(dialect)


def pack(chunks: Sequence[Chunk]) -> PackedSegment:
    """Return the segment of chunks; the caller is in a thread, because that takes long."""
    from backend.search.sql.segments import pack_texts

    return pack_texts(chunk.join_headings for chunk in chunks)


def choose_vectors(database: Database, large_space: int) -> LoadedOnce[NearestVectors]:
    """Return what finds the nearest vectors in a database."""
    return LoadedOnce(partial(_vectors_for, database.dialect, large_space))


def _vectors_for(dialect: str, large_space: int) -> NearestVectors:
    if dialect == "postgresql":
        return IndexedVectors(large_space)
    from backend.search.sql.vector_matrix import MatrixVectors

    return MatrixVectors()


def upkeep(database: Database, clock: Clock, slice_seconds: float) -> "IndexUpkeep":
    """Return the upkeep of the index of a database; the caller is in a thread."""
    from backend.search.sql.upkeep import IndexUpkeep

    return IndexUpkeep(database, clock, slice_seconds)


def choose_reindexing(database: Database, clock: Clock, upkeep: "IndexUpkeep") -> "Reindexing":
    """Return what indexes a database anew."""
    from backend.search.sql.reindexing import Reindexing

    return Reindexing(database, clock, upkeep)
