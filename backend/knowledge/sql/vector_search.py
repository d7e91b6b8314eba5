"""Finding the vectors nearest to a question's, among those of one base by one model."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, text

from backend.knowledge.sql.search_index import Range
from backend.knowledge.sql.vector_rows import as_stored
from backend.meaning.domain import Vector

LARGE_SPACE = 10_000
"""From so many chunks on PostgreSQL searches an index, which may miss some; below it compares all vectors."""

_MOST_CANDIDATES = 1000
"""What `hnsw.ef_search` may be at most."""


class SearchedSpace(NamedTuple):
    """The vectors of a base; `removals` grows when some are deleted."""

    id: int
    base_id: str
    dimension: int
    removals: int
    chunk_count: int


class NeighbourQuery(NamedTuple):
    """The vector of a question, how many of its neighbours are wanted, and which chunks these may be; None is all."""

    vector: Vector
    limit: int
    allowed: Sequence[Range] | None


class NearestVectors(Protocol):
    """Finds vectors in the transaction of the caller."""

    def nearest(
        self,
        connection: Connection,
        space: SearchedSpace,
        asked: NeighbourQuery,
    ) -> list[tuple[int, float]]:
        """Return the numbers of the nearest chunks with their scores, nearest first."""
        ...


class IndexedVectors:
    """`NearestVectors` over pgvector.

    A large space has an index of its own, made by `VectorIndexes`: what other bases hold changes nothing.
    """

    def nearest(
        self,
        connection: Connection,
        space: SearchedSpace,
        asked: NeighbourQuery,
    ) -> list[tuple[int, float]]:
        """Search the index of a large space, unless a filter leaves few chunks; else compare all."""
        allowed = asked.allowed
        left = space.chunk_count if allowed is None else sum(end - first for first, end in allowed)
        is_exact = left < LARGE_SPACE or asked.limit > _MOST_CANDIDATES
        values: dict[str, object] = {"vector": as_stored(asked.vector, "postgresql"), "most": asked.limit}
        condition = ""
        if allowed is not None:
            values["allowed"] = "{" + ",".join(f"[{first},{end})" for first, end in allowed) + "}"
            condition = " AND number <@ CAST(CAST(:allowed AS text) AS int4multirange)"
        if not is_exact:
            connection.execute(_SETTINGS, {"width": str(min(max(2 * asked.limit, 100), _MOST_CANDIDATES))})
        # A query of its own is run once; a cast alone may be run, and read its text, for each row.
        asked_vector = "(SELECT CAST(CAST(:vector AS text) AS halfvec))"
        distance = f"CAST(vector AS halfvec({space.dimension})) <#> {asked_vector}"
        query = (
            f"SELECT number, -({distance}) AS score FROM search_vector"  # noqa: S608 -- numbers of our own
            f" WHERE space_id = {space.id} AND vector IS NOT NULL{condition}"
            f" ORDER BY {f'({distance}) + 0' if is_exact else distance} LIMIT :most"
        )
        return [(row[0], round(float(row[1]), 6)) for row in connection.execute(text(query), values)]


_SETTINGS = text("""
    SELECT set_config('hnsw.ef_search', :width, true), set_config('hnsw.iterative_scan', 'strict_order', true)
""")
"""An index is read on until enough is found of what the filter allows."""
