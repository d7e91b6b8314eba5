"""Rows of vectors: what both databases share of their table, and a vector as each of them takes it."""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, LargeBinary, bindparam, column, delete, select, table, text, update

from backend.embeddings.domain import Vector, vector_numbers
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.short_transactions import DivisibleWork
from backend.foundation.sql.statements import Statement
from backend.search.ports.vectors import ChunkPlace
from backend.search.sql import tables

search_vector = table(
    "search_vector", column("space_id"), column("number"), column("digest", LargeBinary()), column("vector")
)
_edition, _space, _claim = tables.edition_vectors, tables.vector_space, tables.chunk_claim
_VALUE = {"sqlite": ":value", "postgresql": "CAST(CAST(:value AS text) AS halfvec)"}
_NUMBERS_PER_STEP = 256

_COUNT = Statement(
    update(_edition)
    .where(_edition.c.space_id == bindparam("of_space"), _edition.c.edition_id == bindparam("of_edition"))
    .values(
        waiting_chunks=_edition.c.waiting_chunks - bindparam("settled"),
        embedded_chunks=_edition.c.embedded_chunks + bindparam("embedded"),
    )
)
_UNCLAIM = Statement(
    delete(_claim).where(_claim.c.space_id == bindparam("of_space"), _claim.c.number == bindparam("of_number"))
)


class NewVector(NamedTuple):
    """A vector as the database takes it, and the chunk that it is for; None where the model refuses the text."""

    place: ChunkPlace
    digest: bytes
    value: object


class EditionRange(NamedTuple):
    """An edition in a space, with the numbers of its chunks."""

    space_id: int
    edition_id: str
    first_number: int
    end_number: int


def as_stored(vector: Vector, dialect: str) -> bytes | str:
    """Write a vector in half precision, or as the text that PostgreSQL reads."""
    numbers = vector_numbers(vector)
    if dialect == "sqlite":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    return f"[{','.join([f'{number:.5g}' for number in numbers])}]"


class VectorWriter:
    """Stores vectors, and counts them with their editions."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._insert = text(
            "INSERT INTO search_vector (space_id, number, digest, vector)"  # noqa: S608 -- one of two constants
            f" VALUES (:space_id, :number, :digest, {_VALUE[dialect]})"
        )
        is_one = is_among(_edition.c.edition_id, "edition_ids", dialect)
        of_space = _edition.c.space_id == bindparam("space_id")
        self._hold = Statement(
            select(_edition.c.edition_id).where(of_space, is_one).order_by(_edition.c.edition_id).with_for_update()
        )

    def settle(self, connection: Connection, space_id: int, new: Sequence[NewVector]) -> int:
        """Store vectors of chunks of one space that have none, and free the chunks; return how many were stored.

        Chunks of editions that are gone are left out. Who holds an edition is its only writer.
        """
        editions = sorted({one.place.edition_id for one in new})
        asked = {"space_id": space_id, "edition_ids": list_parameter(editions, self._dialect)}
        held = {row["edition_id"] for row in self._hold.rows(connection, asked)}
        there = self._find_stored(connection, space_id, [one.place.number for one in new])
        kept = [one for one in new if one.place.edition_id in held and one.place.number not in there]
        if kept:
            values = [
                {"space_id": space_id, "number": one.place.number, "digest": one.digest, "value": one.value}
                for one in kept
            ]
            connection.execute(self._insert, values)
            _COUNT.change(connection, *_counts(space_id, kept))
        free_claims(connection, [one.place for one in new])
        return len(kept)

    def _find_stored(self, connection: Connection, space_id: int, numbers: Sequence[int]) -> set[int]:
        of_these = search_vector.c.number.in_(numbers)
        query = select(search_vector.c.number).where(search_vector.c.space_id == space_id, of_these)
        return set(connection.execute(query).scalars())


def _counts(space_id: int, new: Sequence[NewVector]) -> list[Mapping[str, object]]:
    settled: dict[str, list[int]] = {}
    for one in new:
        counts = settled.setdefault(one.place.edition_id, [0, 0])
        counts[0] += 1
        counts[1] += one.value is not None
    return [
        {"of_space": space_id, "of_edition": edition_id, "settled": counts[0], "embedded": counts[1]}
        for edition_id, counts in sorted(settled.items())
    ]


def free_claims(connection: Connection, places: Sequence[ChunkPlace]) -> None:
    """Let chunks be taken again that have been taken."""
    if places:
        _UNCLAIM.change(connection, *({"of_space": one.space_id, "of_number": one.number} for one in places))


def clear_edition(edition: EditionRange) -> DivisibleWork[int]:
    """Delete the vectors of an edition and then its row, behind which nothing can be stored; return how many."""
    cleared = 0
    for first in range(edition.first_number, edition.end_number, _NUMBERS_PER_STEP):
        connection = yield
        cleared += _clear_numbers(
            connection, edition.space_id, first, min(first + _NUMBERS_PER_STEP, edition.end_number)
        )
    connection = yield
    is_it = (_edition.c.space_id == edition.space_id) & (_edition.c.edition_id == edition.edition_id)
    connection.execute(delete(_edition).where(is_it))
    cleared += _clear_numbers(connection, edition.space_id, edition.first_number, edition.end_number)
    is_space = _space.c.id == edition.space_id
    connection.execute(update(_space).where(is_space).values(removals=_space.c.removals + 1))
    return cleared


def _clear_numbers(connection: Connection, space_id: int, first: int, end: int) -> int:
    of_space, are_these = search_vector.c.space_id == space_id, search_vector.c.number.between(first, end - 1)
    claimed = (_claim.c.space_id == space_id) & _claim.c.number.between(first, end - 1)
    connection.execute(delete(_claim).where(claimed))
    return connection.execute(delete(search_vector).where(of_space, are_these)).rowcount
