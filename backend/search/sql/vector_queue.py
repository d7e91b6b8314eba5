"""The queue of chunks that wait for a vector: found by their documents, leased in the time of the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Integer, Text, bindparam, cast, func, insert, select, text

from backend.embeddings.domain import EmbeddingModel
from backend.foundation.sql.clock import database_time
from backend.foundation.sql.parameters import Dialect
from backend.foundation.sql.statements import Row, Statement
from backend.search.domain.chunks import join_headings
from backend.search.ports.vectors import ChunkPlace, TextWithoutVector
from backend.search.sql import tables
from backend.search.sql.vector_rows import NewVector, VectorWriter, free_claims, search_vector

_base, _document, _chunk = tables.knowledge_base, tables.document, tables.chunk
_space, _edition, _claim = tables.vector_space, tables.edition_vectors, tables.chunk_claim
_EDITIONS_AT_ONCE = 256
_TURNS_A_BATCH = 8
"""A document has this part of a batch in its turn, and more only where no other document waits."""

_TAKING_LOCK = 7_205_759_403_792_794
"""The key of an advisory lock: who holds it is the only one to take texts, so that equal texts are taken once."""

IS_OF_MODEL = (_space.c.model == bindparam("model")) & (_space.c.dimension == bindparam("dimension"))
HAS_WAITING = text("edition_vectors.waiting_chunks > 0")
"""Written out: the partial index serves only statements that say so."""

_IS_SHOWN = _edition.c.edition_id == _document.c.edition_id
_IS_KNOWN = (_edition.c.space_id == bindparam("space_id")) & _IS_SHOWN
_FIND_SPACE = Statement(select(_space.c.id).where(_space.c.knowledge_base_id == bindparam("base_id"), IS_OF_MODEL))
_ADD_SPACE = Statement(
    text("""
        INSERT INTO vector_space (knowledge_base_id, model, dimension, removals)
        VALUES (:base_id, :model, :dimension, 0)
        ON CONFLICT (knowledge_base_id, model, dimension) DO NOTHING
    """)
)
_BASES = Statement(select(_base.c.id).where(_base.c.embed, _base.c.chunk_count > 0).order_by(_base.c.id))
_MODELS = Statement(
    select(_space.c.model.label("name"), _space.c.dimension).where(_space.c.knowledge_base_id == bindparam("base_id"))
)
_UNKNOWN = Statement(
    select(_document.c.edition_id, _chunk.c.number, _document.c.chunk_count)
    .join_from(_document, _chunk, (_chunk.c.edition_id == _document.c.edition_id) & (_chunk.c.ordinal == 0))
    .join(_base, _base.c.id == _document.c.knowledge_base_id)
    .where(_document.c.knowledge_base_id == bindparam("base_id"), _base.c.embed)
    .where(~select(_edition.c.space_id).where(_IS_KNOWN).exists())
    .limit(_EDITIONS_AT_ONCE)
)
_ADD_EDITION = Statement(
    text("""
        INSERT INTO edition_vectors (space_id, edition_id, first_number, end_number, waiting_chunks, embedded_chunks)
        VALUES (:space_id, :edition_id, :first_number, :end_number, :waiting_chunks, 0)
        ON CONFLICT (space_id, edition_id) DO NOTHING
    """)
)
_SPACES_WITH_WAITING = Statement(
    select(_space.c.id, _base.c.last_active_at)
    .join(_base, (_base.c.id == _space.c.knowledge_base_id) & _base.c.embed)
    .where(IS_OF_MODEL, select(_edition.c.space_id).where(_edition.c.space_id == _space.c.id, HAS_WAITING).exists())
    .order_by(_space.c.id)
)
_WAITING_EDITIONS = (
    select(_edition.c.edition_id)
    .join(_document, _IS_SHOWN)
    .where(_edition.c.space_id == bindparam("space_id"), HAS_WAITING)
)
_SETTLED = _edition.c.end_number - _edition.c.first_number - _edition.c.waiting_chunks
_LEAST_SETTLED = Statement(
    _WAITING_EDITIONS.order_by(_SETTLED, _edition.c.waiting_chunks, _edition.c.first_number).limit(_EDITIONS_AT_ONCE)
)
_OLDEST = Statement(_WAITING_EDITIONS.order_by(_edition.c.first_number).limit(1))
_COUNT_WAITING = Statement(
    select(func.coalesce(func.sum(_edition.c.waiting_chunks), 0).label("waiting"))
    .join_from(_edition, _space, _space.c.id == _edition.c.space_id)
    .join(_base, (_base.c.id == _space.c.knowledge_base_id) & _base.c.embed)
    .join(_document, _IS_SHOWN)
    .where(HAS_WAITING, IS_OF_MODEL)
)
_CLAIM = Statement(insert(_claim).values(leased_until=database_time("lease")))


class _Waiting(NamedTuple):
    place: ChunkPlace
    digest: bytes
    text: str


class WaitingSpace(NamedTuple):
    """A space in which chunks wait, and when its base was searched last."""

    id: int
    last_active_at: datetime | None


def of_model(model: EmbeddingModel) -> dict[str, object]:
    """Return the parameters of `IS_OF_MODEL`."""
    return {"model": model.name, "dimension": model.dimension}


class VectorQueue:
    """The parts of `ChunkVectors` by which chunks get their vectors, each within a transaction of the caller."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._writer = VectorWriter(dialect)
        of_edition = _chunk.c.edition_id == bindparam("edition_id")
        of_space = search_vector.c.space_id == bindparam("space_id")
        has_vector = select(search_vector.c.number).where(of_space, search_vector.c.number == _chunk.c.number).exists()
        is_its = (_claim.c.space_id == bindparam("space_id")) & (_claim.c.number == _chunk.c.number)
        is_taken = select(_claim.c.number).where(is_its, _claim.c.leased_until > database_time("zero")).exists()
        self._free_chunks = Statement(
            select(_chunk.c.edition_id, _chunk.c.number, _chunk.c.heading_path, _chunk.c.text)
            .where(of_edition, ~has_vector, ~is_taken)
            .order_by(_chunk.c.ordinal)
            .limit(bindparam("most", type_=Integer))
        )

    def bases(self, connection: Connection) -> list[str]:
        """Return the bases that are to be embedded."""
        return [row["id"] for row in _BASES.rows(connection, {})]

    def models_of(self, connection: Connection, base_id: str) -> list[EmbeddingModel]:
        """Return the models that a base is embedded by."""
        return [EmbeddingModel(**row) for row in _MODELS.rows(connection, {"base_id": base_id})]

    def unknown(self, connection: Connection, model: EmbeddingModel, base_id: str) -> Sequence[Row]:
        """Return some editions of a base of which nothing is known under a model."""
        row = _FIND_SPACE.first(connection, {"base_id": base_id, **of_model(model)})
        space_id = row["id"] if row is not None else 0
        return _UNKNOWN.rows(connection, {"base_id": base_id, "space_id": space_id})

    def note(self, connection: Connection, model: EmbeddingModel, base_id: str, found: Sequence[Row]) -> int:
        """Let editions wait; return how many."""
        its = {"base_id": base_id, **of_model(model)}
        _ADD_SPACE.change(connection, its)
        row = _FIND_SPACE.first(connection, its)
        if row is None:
            return 0
        editions = [
            {
                "space_id": row["id"],
                "edition_id": one["edition_id"],
                "first_number": one["number"],
                "end_number": one["number"] + one["chunk_count"],
                "waiting_chunks": one["chunk_count"],
            }
            for one in found
        ]
        _ADD_EDITION.change(connection, *editions)
        return len(editions)

    def count_waiting(self, connection: Connection, model: EmbeddingModel) -> int:
        """Return how many chunks wait."""
        row = _COUNT_WAITING.first(connection, of_model(model))
        return int(row["waiting"]) if row is not None else 0

    def spaces(self, connection: Connection, model: EmbeddingModel) -> list[WaitingSpace]:
        """Return the spaces in which chunks wait, or have been taken."""
        return [WaitingSpace(**row) for row in _SPACES_WITH_WAITING.rows(connection, of_model(model))]

    def take(
        self, connection: Connection, space_id: int, limit: int, lease: timedelta
    ) -> tuple[list[TextWithoutVector], int]:
        """Take texts of a space; return also how many of its chunks were given the vectors of equal texts.

        Only the space itself is looked at: whoever fills one base must not learn from it what another base holds.
        """
        if self._dialect == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _TAKING_LOCK})
        waiting = self._free(connection, space_id, limit)
        known = self._find_known(connection, space_id, {one.digest for one in waiting})
        reused = self._reuse(connection, space_id, [one for one in waiting if one.digest in known], known)
        taken = self._find_taken(connection, space_id, {one.digest for one in waiting})
        free = [one for one in waiting if one.digest not in known and one.digest not in taken]
        if free:
            free_claims(connection, [one.place for one in free])
            _CLAIM.change(
                connection,
                *(
                    {
                        "space_id": space_id,
                        "number": one.place.number,
                        "digest": one.digest,
                        "lease": lease.total_seconds(),
                    }
                    for one in free
                ),
            )
        return _by_text(free), reused

    def put(self, connection: Connection, new: Sequence[NewVector]) -> int:
        """Store vectors."""
        spaces = sorted({one.place.space_id for one in new})
        by_space = {space_id: [one for one in new if one.place.space_id == space_id] for space_id in spaces}
        return sum(self._writer.settle(connection, space_id, some) for space_id, some in by_space.items())

    def _free(self, connection: Connection, space_id: int, limit: int) -> list[_Waiting]:
        """Choose what is embedded next: documents take turns, those first of which the least is embedded.

        So a small document waits for none that is larger. The oldest has a turn in each batch, and waits for ever for
        none of the small ones that still come.
        """
        of_space = {"space_id": space_id}
        oldest, least = (
            [row["edition_id"] for row in statement.rows(connection, of_space)]
            for statement in (_OLDEST, _LEAST_SETTLED)
        )
        found: dict[int, _Waiting] = {}
        for most, editions in ((max(limit // _TURNS_A_BATCH, 1), [*oldest, *least]), (limit, [*least, *oldest])):
            for edition_id in dict.fromkeys(editions):
                if len(found) >= limit:
                    break
                asked = {"edition_id": edition_id, "space_id": space_id, "zero": 0.0, "most": most}
                found |= {
                    row["number"]: _decode_waiting(space_id, row) for row in self._free_chunks.rows(connection, asked)
                }
        return list(found.values())[:limit]

    def _find_known(self, connection: Connection, space_id: int, digests: set[bytes]) -> Mapping[bytes, object]:
        """Return the vectors, as they are stored, that equal texts have in a space."""
        stored = cast(search_vector.c.vector, Text) if self._dialect == "postgresql" else search_vector.c.vector
        of_these = search_vector.c.digest.in_(sorted(digests))
        query = select(search_vector.c.digest, stored.label("value")).where(
            search_vector.c.space_id == space_id, of_these
        )
        return {bytes(row[0]): row[1] for row in connection.execute(query)}

    def _reuse(
        self, connection: Connection, space_id: int, waiting: Sequence[_Waiting], known: Mapping[bytes, object]
    ) -> int:
        new = [NewVector(one.place, one.digest, known[one.digest]) for one in waiting]
        return self._writer.settle(connection, space_id, new) if new else 0

    def _find_taken(self, connection: Connection, space_id: int, digests: set[bytes]) -> set[bytes]:
        """Return which of these texts of a space another process has taken, or this one in an earlier batch."""
        is_held = _claim.c.leased_until > database_time("zero")
        query = select(_claim.c.digest).where(_claim.c.space_id == space_id, _claim.c.digest.in_(sorted(digests)))
        return {bytes(row[0]) for row in connection.execute(query.where(is_held), {"zero": 0.0})}


def _decode_waiting(space_id: int, row: Row) -> _Waiting:
    searched = join_headings(orjson.loads(row["heading_path"]), row["text"])
    place = ChunkPlace(space_id, row["edition_id"], row["number"])
    return _Waiting(place, sha256(searched.encode()).digest(), searched)


def _by_text(waiting: Sequence[_Waiting]) -> list[TextWithoutVector]:
    """Join the chunks of equal texts."""
    places: dict[bytes, list[ChunkPlace]] = {}
    texts = {one.digest: one.text for one in waiting}
    for one in waiting:
        places.setdefault(one.digest, []).append(one.place)
    return [TextWithoutVector(digest.hex(), texts[digest], tuple(of_text)) for digest, of_text in places.items()]
