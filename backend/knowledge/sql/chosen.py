"""The search index and its upkeep, loaded at their first use: they need NumPy, which takes memory and time to load."""

import asyncio
from typing import TYPE_CHECKING

from backend.foundation.sql.database import Database
from backend.knowledge.sql.search_index import SearchIndex
from backend.knowledge.sql.vector_search import IndexedVectors, NearestVectors
from shared.clock import Clock

if TYPE_CHECKING:
    from backend.knowledge.sql.upkeep import IndexUpkeep


class ChosenIndex:
    """The search index for a database."""

    def __init__(self, database: Database) -> None:
        self._dialect = database.dialect
        self._index: SearchIndex | None = None

    async def __call__(self) -> SearchIndex:
        """Return the index; the first call loads it in a thread."""
        if self._index is None:
            self._index = await asyncio.to_thread(_index_for, self._dialect)
        return self._index


def _index_for(dialect: str) -> SearchIndex:
    from backend.knowledge.sql.segment_index import SegmentIndex

    return SegmentIndex(dialect)


class ChosenVectors:
    """What finds the nearest vectors in a database."""

    def __init__(self, database: Database, large_space: int) -> None:
        self._dialect = database.dialect
        self._large_space = large_space
        self._nearest: NearestVectors | None = None

    async def __call__(self) -> NearestVectors:
        """Return it; the first call loads it in a thread."""
        if self._nearest is None:
            self._nearest = await asyncio.to_thread(_vectors_for, self._dialect, self._large_space)
        return self._nearest


def _vectors_for(dialect: str, large_space: int) -> NearestVectors:
    if dialect == "postgresql":
        return IndexedVectors(large_space)
    from backend.knowledge.sql.vector_matrix import MatrixVectors

    return MatrixVectors()


async def index_upkeep(database: Database, clock: Clock, slice_seconds: float) -> "IndexUpkeep":
    """Return the upkeep of the index of a database."""
    return await asyncio.to_thread(_upkeep_for, database, clock, slice_seconds)


def _upkeep_for(database: Database, clock: Clock, slice_seconds: float) -> "IndexUpkeep":
    from backend.knowledge.sql.upkeep import IndexUpkeep

    return IndexUpkeep(database, clock, slice_seconds)
