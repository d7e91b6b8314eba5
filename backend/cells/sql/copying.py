"""Copying a tenant's rows from one cell to another, while they change.

A copy is taken of one state of the old cell. The next one takes the rows that transactions have written which the copy
before may not have seen, and deletes in the new cell what the old one does not have any more.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, TextClause, and_, delete, func, not_, select, text
from sqlalchemy import tuple_ as row_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.util import await_only

from backend.cells.sql.owned import LATE, belongs_to, columns_to_move, identity_of, tables_of_tenants
from backend.foundation.sql.database import Database

Rows = Sequence[dict[str, Any]]

_ROWS_AT_ONCE = 200
_BYTES_AT_ONCE = 4_000_000
_NAMES_AT_ONCE = 1_000
_UNBOUND = ("SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0")
_HORIZON = text("SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text)")


class Copied(NamedTuple):
    """What a copy has brought: how many rows it wrote and deleted, and what the next one is to begin at."""

    seen: str
    rows: int
    deleted: int


class TenantCopy:
    """Copies one tenant."""

    def __init__(self, source: Database, target: Database, tenant: str) -> None:
        self._source = source
        self._target = target
        self._tenant = tenant

    async def bring(self, seen: str | None) -> Copied:
        """Copy what has changed since `seen`; everything without it."""
        return await self._source.snapshot(partial(self._bring, seen=seen), timeout_seconds=None)

    def _bring(self, source: Connection, seen: str | None) -> Copied:
        for setting in _UNBOUND:
            source.execute(text(setting))
        horizon = source.execute(_HORIZON).scalar_one()
        deleted = 0
        try:
            rows = sum(self._bring_table(source, table, seen) for table in tables_of_tenants())
        except IntegrityError:
            # A name is free again in the old cell, and taken by a row in the new one that the old one has deleted.
            deleted = self._prune(source, is_sure=False)
            rows = sum(self._bring_table(source, table, seen) for table in tables_of_tenants())
        return Copied(horizon, rows, deleted + self._prune(source, is_sure=True))

    def _bring_table(self, source: Connection, table: Table, seen: str | None) -> int:
        asked = select(*(table.c[name] for name in columns_to_move(table))).where(self._is_early(table))
        if seen is not None:
            asked = asked.where(_is_newer(table, seen))
        count = 0
        for rows in _portions(source, asked):
            self._write(partial(put_rows, table=table, rows=rows))
            count += len(rows)
        return count

    def _prune(self, source: Connection, *, is_sure: bool) -> int:
        """Delete what the old cell does not have any more; with `is_sure` only where the numbers of rows differ."""
        return sum(self._prune_table(source, table, is_sure) for table in reversed(tables_of_tenants()))

    def _prune_table(self, source: Connection, table: Table, is_sure: bool) -> int:
        its, names = belongs_to(table, self._tenant), [table.c[name] for name in identity_of(table)]
        if is_sure:
            here = source.execute(select(func.count()).select_from(table).where(self._is_early(table))).scalar_one()
            if here == self._read(select(func.count()).select_from(table).where(its))[0][0]:
                return 0
        kept = {tuple(row) for row in source.execute(select(*names).where(self._is_early(table)))}
        gone = [tuple(row) for row in self._read(select(*names).where(its)) if tuple(row) not in kept]
        for first in range(0, len(gone), _NAMES_AT_ONCE):
            which = row_of(*names).in_(gone[first : first + _NAMES_AT_ONCE])
            self._write(lambda connection, which=which: connection.execute(delete(table).where(which)))
        return len(gone)

    def _is_early(self, table: Table) -> ColumnElement[bool]:
        late, its = LATE.get(table.name), belongs_to(table, self._tenant)
        if table.name == "api_key":
            return and_(its, text("false"))
        return its if late is None else and_(its, not_(_group(late)))

    def _read(self, asked: Any) -> Sequence[Any]:
        return self._wait(self._target.read(lambda connection: connection.execute(asked).all(), timeout_seconds=None))

    def _write(self, work: Callable[[Connection], Any]) -> None:
        self._wait(self._target.write(work))

    @staticmethod
    def _wait(work: Coroutine[Any, Any, Any]) -> Any:
        return await_only(work)


def put_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Write rows over those of the same identity; what a cell has of its own in them stays."""
    if not rows:
        return
    identity, statement = identity_of(table), insert(table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in identity}
    if changed:
        connection.execute(statement.on_conflict_do_update(index_elements=identity, set_=changed), rows)
    else:
        connection.execute(statement.on_conflict_do_nothing(index_elements=identity), rows)


def late_rows(source: Connection, table: Table, tenant: str) -> Rows:
    """Return the rows of a table that come with the switch."""
    asked = select(*(table.c[name] for name in columns_to_move(table))).where(
        belongs_to(table, tenant), LATE[table.name]
    )
    return [dict(row) for row in source.execute(asked).mappings()]


def _group(condition: TextClause) -> ColumnElement[bool]:
    return and_(condition, text("true")).self_group()


def _is_newer(table: Table, seen: str) -> TextClause:
    return text(f"age({table.name}.xmin) <= age(CAST(CAST(CAST(:seen AS text) AS xid8) AS xid))").bindparams(seen=seen)


def _portions(source: Connection, asked: Any) -> Iterator[Rows]:
    """Read rows as they come, so many at a time that a portion is neither large nor slow to write."""
    found = source.execution_options(yield_per=_ROWS_AT_ONCE).execute(asked).mappings()
    portion: list[dict[str, Any]] = []
    size = 0
    for row in found:
        portion.append(dict(row))
        size += _size_of(row.values())
        if len(portion) == _ROWS_AT_ONCE or size > _BYTES_AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _size_of(values: Iterable[object]) -> int:
    return sum(len(value) for value in values if isinstance(value, str | bytes))
