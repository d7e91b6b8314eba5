"""Finding the vectors nearest to a question's, among those of some bases by one model."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, TextClause, text

from backend.embeddings.domain import Vector
from backend.foundation.sql.parameters import Dialect
from backend.search.domain.chunks import Allowed, Found
from backend.search.sql.vector_rows import as_stored

LARGE_SPACE = 15_000
"""From so many chunks on PostgreSQL searches an index, which may miss some; below it compares all vectors."""

_LEAST_CANDIDATES, _CANDIDATES_A_HIT, _MOST_CANDIDATES = 200, 3, 1000
"""What `hnsw.ef_search` is: at least, for each that is wanted, and at most, which is pgvector's bound.

Three for each find 98 of the nearest 100 real texts; docs/adr/0034-vectors-in-spaces.md has the figures.
"""


_ASKED = {
    "postgresql": "unnest(CAST(:documents AS text[]), CAST(:ordinals AS int[])) AS asked (document_id, ordinal)",
    "sqlite": """(
        SELECT first.value AS document_id, second.value AS ordinal
        FROM json_each(:documents) AS first JOIN json_each(:ordinals) AS second ON second.key = first.key
    ) AS asked""",
}


def statement_of_vectors(dialect: Dialect) -> TextClause:
    """Return the query which of some chunks, each named by document and place in it, have a vector of a model.

    Each is looked up by itself: a join would let PostgreSQL read all documents where it takes these for many.
    """
    return text(f"""
        SELECT (
            SELECT chunk.id FROM document CROSS JOIN chunk CROSS JOIN vector_space AS space
            CROSS JOIN search_vector AS stored
            WHERE document.id = asked.document_id
            AND chunk.edition_id = document.edition_id AND chunk.ordinal = asked.ordinal
            AND space.knowledge_base_id = chunk.knowledge_base_id
            AND space.model = :model AND space.dimension = :dimension
            AND stored.space_id = space.id AND stored.number = chunk.number AND stored.vector IS NOT NULL
        ) AS id FROM {_ASKED[dialect]}
    """)  # noqa: S608 -- constants


class SearchedSpace(NamedTuple):
    """The vectors of a base; `removals` grows when some are deleted."""

    id: int
    base_id: str
    dimension: int
    removals: int
    chunk_count: int


class NeighbourQuery(NamedTuple):
    """The vector of a question, how many of its neighbours are wanted, and by base which chunks these may be."""

    vector: Vector
    limit: int
    allowed: Allowed


class NearestVectors(Protocol):
    """Finds vectors in the transaction of the caller."""

    def nearest(self, connection: Connection, spaces: Sequence[SearchedSpace], asked: NeighbourQuery) -> list[Found]:
        """Return the chunks nearest to a question among those of all these spaces, nearest first.

        The spaces are of one model; `allowed` names the base of each of them, or is None.
        """
        ...


class IndexedVectors:
    """`NearestVectors` over pgvector.

    A large space has an index of its own, made by `VectorSweep`: what other bases hold changes nothing. One that a
    filter leaves few chunks of, and all small ones, are compared whole, in one statement.
    """

    def __init__(self, large_space: int = LARGE_SPACE) -> None:
        self._large_space = large_space

    def nearest(self, connection: Connection, spaces: Sequence[SearchedSpace], asked: NeighbourQuery) -> list[Found]:
        """Search the index of each large space, and compare all vectors of the others."""
        is_exact = asked.limit > _MOST_CANDIDATES
        is_large = [not is_exact and _size(space, asked.allowed) >= self._large_space for space in spaces]
        large = [space for space, chosen in zip(spaces, is_large, strict=True) if chosen]
        small = [space for space, chosen in zip(spaces, is_large, strict=True) if not chosen]
        found = _compare(connection, small, asked) if small else []
        if large:
            wanted = max(_CANDIDATES_A_HIT * asked.limit, _LEAST_CANDIDATES)
            connection.execute(_SETTINGS, {"width": str(min(wanted, _MOST_CANDIDATES))})
        found += [one for space in large for one in _look_up(connection, space, asked)]
        if large:
            connection.execute(_SORTS)
        return sorted(found, key=lambda one: (-one.score, one.base_id, one.number))[: asked.limit]


_VECTOR = "(SELECT CAST(CAST(:vector AS text) AS halfvec))"
"""A query of its own is run once; a cast alone may be run, and read its text, for each row."""

_ALL_NUMBERS = "{(,)}"
_SETTINGS = text("""
    SELECT set_config('hnsw.ef_search', :width, true), set_config('hnsw.iterative_scan', 'strict_order', true),
           set_config('enable_sort', 'off', true)
""")
"""An index is read on until enough is found of what the filter allows. It alone has the order that is asked for without
a sort: with old statistics PostgreSQL takes a large space for a small one, and compares all its vectors."""

_SORTS = text("SELECT set_config('enable_sort', 'on', true)")

_COMPARE = text(f"""
    SELECT space_id, number, -(vector <#> {_VECTOR}) AS score
    FROM unnest(CAST(:spaces AS int[]), CAST(CAST(:ranges AS text[]) AS int4multirange[])) AS asked (space, numbers)
    JOIN search_vector ON space_id = asked.space AND number <@ asked.numbers
    WHERE vector IS NOT NULL ORDER BY score DESC LIMIT :most
""")  # noqa: S608 -- a constant


def _size(space: SearchedSpace, allowed: Allowed) -> int:
    if allowed is None:
        return space.chunk_count
    return sum(each.end_number - each.first_number for each in allowed[space.base_id])


def _multirange(space: SearchedSpace, allowed: Allowed) -> str:
    if allowed is None:
        return _ALL_NUMBERS
    return "{" + ",".join(f"[{first},{end})" for first, end in allowed[space.base_id]) + "}"


def _compare(connection: Connection, spaces: Sequence[SearchedSpace], asked: NeighbourQuery) -> list[Found]:
    bases = {space.id: space.base_id for space in spaces}
    values = {
        "vector": as_stored(asked.vector, "postgresql"),
        "spaces": list(bases),
        "ranges": [_multirange(space, asked.allowed) for space in spaces],
        "most": asked.limit,
    }
    return [Found(bases[row[0]], row[1], round(float(row[2]), 6)) for row in connection.execute(_COMPARE, values)]


def _look_up(connection: Connection, space: SearchedSpace, asked: NeighbourQuery) -> list[Found]:
    values: dict[str, object] = {"vector": as_stored(asked.vector, "postgresql"), "most": asked.limit}
    condition = ""
    if asked.allowed is not None:
        values["numbers"] = _multirange(space, asked.allowed)
        condition = " AND number <@ CAST(CAST(:numbers AS text) AS int4multirange)"
    distance = f"CAST(vector AS halfvec({space.dimension})) <#> {_VECTOR}"
    query = (
        f"SELECT number, -({distance}) AS score FROM search_vector"  # noqa: S608 -- numbers of our own
        f" WHERE space_id = {space.id} AND vector IS NOT NULL{condition} ORDER BY {distance} LIMIT :most"
    )
    return [Found(space.base_id, row[0], round(float(row[1]), 6)) for row in connection.execute(text(query), values)]
