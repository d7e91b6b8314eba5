"""What an engine beside the database is still to be told: rows that the transactions of documents write."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, exists, insert, or_, select, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.parameters import is_among, list_parameter
from backend.foundation.sql.statements import Row, Statement
from backend.search.domain.chunks import ALL_NUMBERS, CHUNKS_AT_ONCE, ChunkHit, Found, Range, join_headings
from backend.search.domain.filters import Filter
from backend.search.ports.engine import BaseSize, CurrentBases, TakenChanges
from backend.search.sql import tables
from backend.search.sql.chunk_rows import IS_OF_DOCUMENT, ChunkRows
from shared.clock import Clock

LEASE = timedelta(seconds=60)
NUMBERS_AT_ONCE = 4_096
CHANGES_AT_ONCE = 16
"""How much a process takes, and has to tell again where it ends before it is through."""

_base, _document, _chunk = tables.knowledge_base, tables.document, tables.chunk
_change, _unseen = tables.engine_change, tables.unseen_edition
_ADD = Statement(insert(_change))


class SqlEngineLog:
    """The `EngineLog` over a `Database`, whose transactions are its work.

    `settle_seconds` is how long after a change an engine may still answer as before it.
    """

    def __init__(self, database: Database, clock: Clock, settle_seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._settle = timedelta(seconds=settle_seconds)
        self._chunks = ChunkRows(database.dialect)
        among = partial(is_among, name="ids", dialect=database.dialect)
        is_behind = or_(
            exists().where(_change.c.knowledge_base_id == _base.c.id, _change.c.shown_at.is_(None)),
            exists().where(_change.c.knowledge_base_id == _base.c.id, _change.c.shown_at > bindparam("now")),
            exists().where(_unseen.c.knowledge_base_id == _base.c.id),
        )
        sizes = (_base.c[name] for name in ("id", "version", "chunk_count", "index_token_count", "next_chunk_number"))
        with_chunks = select(*sizes, is_behind.label("is_behind")).where(_base.c.chunk_count > 0).order_by(_base.c.id)
        self._all = Statement(with_chunks)
        self._some = Statement(with_chunks.where(among(_base.c.id)))
        self._read = Statement(
            select(_chunk.c.number, _chunk.c.heading_path, _chunk.c.text)
            .join_from(_chunk, _document, IS_OF_DOCUMENT)
            .where(
                _chunk.c.knowledge_base_id == bindparam("base_id"),
                _chunk.c.number >= bindparam("first"),
                _chunk.c.number < bindparam("end"),
            )
            .order_by(_chunk.c.number)
            .limit(CHUNKS_AT_ONCE)
        )

    def note(self, work: Connection, base_id: str, numbers: Range) -> None:
        """Add a row."""
        _ADD.change(work, _new_change(base_id, numbers))

    async def note_all(self, size: BaseSize) -> None:
        """Add a row for each part of a base, and one for whatever the engine holds beyond them."""
        starts = range(0, size.end_number, NUMBERS_AT_ONCE)
        parts = [Range(first, min(first + NUMBERS_AT_ONCE, size.end_number)) for first in starts]
        new = [_new_change(size.base_id, part) for part in (*parts, Range(size.end_number, ALL_NUMBERS.end_number))]
        await self._database.write(lambda connection: _ADD.change(connection, *new))

    async def read_sizes(self, base_ids: Sequence[str] | None = None) -> Sequence[BaseSize]:
        """Read the rows of bases without changes that wait."""
        rows = await self._database.read(partial(self._read_bases, base_ids=base_ids))
        return [
            BaseSize(row["id"], row["chunk_count"], row["next_chunk_number"]) for row in rows if not row["is_behind"]
        ]

    async def read_current(self, base_ids: Sequence[str], filters: Filter | None) -> CurrentBases | None:
        """Read the rows of bases, and of the documents that pass the filters, of one state."""

        def work(connection: Connection) -> CurrentBases | None:
            rows = self._read_bases(connection, base_ids)
            if any(row["is_behind"] for row in rows):
                return None
            allowed = None if filters is None else self._chunks.find_allowed(connection, base_ids, filters)
            versions = tuple((row["id"], row["version"]) for row in rows)
            chunks, tokens = (sum(row[name] for row in rows) for name in ("chunk_count", "index_token_count"))
            return CurrentBases(versions, chunks, tokens, allowed)

        return await self._database.snapshot(work)

    async def read_hits(self, found: Sequence[Found]) -> Sequence[ChunkHit]:
        """Read chunks and the documents that have them."""
        return await self._database.snapshot(partial(self._chunks.hits, found=found))

    async def take(self) -> TakenChanges | None:
        """Take rows, unless another process has rows of the same base."""
        if not await self._database.read(
            lambda connection: connection.execute(select(exists(_change.select()))).scalar()
        ):
            return None
        return await self._database.write(self._take)

    async def renew(self, taken: TakenChanges) -> None:
        """Write a later time."""
        held = {"held_until": self._clock.now() + LEASE}
        await self._database.write(lambda work: work.execute(update(_change).where(_are(taken)).values(held)))

    async def read_chunks(self, base_id: str, numbers: Range) -> Sequence[tuple[int, str]]:
        """Read what chunks are found by."""
        asked = {"base_id": base_id, "first": numbers.first_number, "end": numbers.end_number}
        rows = await self._database.read(lambda connection: self._read.rows(connection, asked))
        return [(row["number"], join_headings(orjson.loads(row["heading_path"]), row["text"])) for row in rows]

    async def settle(self, taken: TakenChanges, *, is_told: bool) -> None:
        """Note when searches see what the engine was told, or that it was not."""
        values = {"held_until": None, "shown_at": self._clock.now() + self._settle if is_told else None}
        await self._database.write(lambda work: work.execute(update(_change).where(_are(taken)).values(values)))

    def _read_bases(self, connection: Connection, base_ids: Sequence[str] | None) -> Sequence[Row]:
        asked: dict[str, object] = {"now": self._clock.now()}
        if base_ids is None:
            return self._all.rows(connection, asked)
        return self._some.rows(connection, {**asked, "ids": list_parameter(base_ids, self._database.dialect)})

    def _take(self, connection: Connection) -> TakenChanges | None:
        now = self._clock.now()
        connection.execute(delete(_change).where(_change.c.shown_at <= now))
        held = _change.alias("held")
        is_held = exists().where(held.c.knowledge_base_id == _change.c.knowledge_base_id, held.c.held_until > now)
        query = _select_waiting().where(~is_held).order_by(_change.c.id)
        first = connection.execute(query.limit(1)).first()
        if first is None:
            return None
        of_base = query.where(_change.c.knowledge_base_id == first[1]).limit(CHANGES_AT_ONCE)
        rows = connection.execute(of_base).all()
        taken = TakenChanges(first[1], tuple(row[0] for row in rows), tuple(Range(row[2], row[3]) for row in rows))
        is_free = or_(_change.c.held_until.is_(None), _change.c.held_until <= now)
        changed = connection.execute(update(_change).where(_are(taken), is_free).values(held_until=now + LEASE))
        return taken if changed.rowcount == len(rows) else None


def _select_waiting() -> Select[*tuple[Any, ...]]:
    """Select changes that the engine was not told of; not those of chunks that no document has yet."""
    is_arriving = exists().where(
        _unseen.c.knowledge_base_id == _change.c.knowledge_base_id,
        ~_unseen.c.is_leaving,
        _unseen.c.first_number <= _change.c.first_number,
        _unseen.c.end_number >= _change.c.end_number,
    )
    columns = (_change.c[name] for name in ("id", "knowledge_base_id", "first_number", "end_number"))
    return select(*columns).where(_change.c.shown_at.is_(None), ~is_arriving)


def _are(taken: TakenChanges) -> ColumnElement[bool]:
    return _change.c.id.in_(taken.ids)


def _new_change(base_id: str, numbers: Range) -> dict[str, object]:
    return {"knowledge_base_id": base_id, "first_number": numbers.first_number, "end_number": numbers.end_number}
