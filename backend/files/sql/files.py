"""Files in SQL, their bytes in pieces."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, delete, func, insert, or_, select, update

from backend.files.domain import FileQuery, FileQuota, StoredFile
from backend.files.sql import tables
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.named_locks import lock_name
from backend.foundation.sql.paging import follows_row, rows_in_order
from shared.clock import Clock
from shared.errors import KeyHeld, NotFound

PIECE_BYTES = 512 * 1024
"""Written in a few milliseconds by either database."""

TOUCH_NOTED_EVERY = timedelta(hours=12)
"""Retention counts days, and a read need not write each time."""

_file = tables.uploaded_file
_piece = tables.file_piece
_COLUMNS = [_file.c[name] for name in StoredFile.model_fields]
_IS_STORED = _file.c.state == tables.STORED
_PLACE = (_file.c.created_at, _file.c.id)


class SqlFileStore:
    """The `FileStore` over a `Database`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(
        self, file: StoredFile, body: bytes | bytearray, quota: FileQuota, claim: KeyClaim | None = None
    ) -> None:
        """Store the row, then the pieces, each in a transaction of its own; then show the file and take the key."""
        await self._database.write(lambda connection: self._begin(connection, file, quota))
        view = memoryview(body)
        for ordinal, start in enumerate(range(0, len(body), PIECE_BYTES)):
            piece = bytes(view[start : start + PIECE_BYTES])
            row: dict[str, object] = {"file_id": file.id, "ordinal": ordinal, "body": piece}

            def work(connection: Connection, row: dict[str, object] = row) -> None:
                self._set_state(connection, file.id, tables.STORING)
                connection.execute(insert(_piece), row)

            await self._database.write(work)
        try:
            await self._database.write(lambda connection: self._show(connection, file.id, claim))
        except KeyHeld:
            await self._withdraw(_file.c.id == file.id, ~_IS_STORED)
            raise

    async def find(self, file_id: str) -> StoredFile | None:
        """Return a stored file, or None; note that it was touched, where that was noted longer ago."""
        query = select(*_COLUMNS, _file.c.touched_at).where(_file.c.id == file_id, _IS_STORED)
        row = await self._database.read(lambda connection: connection.execute(query).mappings().first())
        if row is not None and row["touched_at"] < self._clock.now() - TOUCH_NOTED_EVERY:
            touched = update(_file).where(_file.c.id == file_id, _IS_STORED).values(touched_at=self._clock.now())
            await self._database.write(lambda connection: connection.execute(touched))
        return _to_file(row) if row is not None else None

    async def page(self, query: FileQuery) -> tuple[StoredFile, ...]:
        """Return a page and one file more."""
        return await self._database.read(lambda connection: _page(connection, query))

    async def pieces(self, file_id: str) -> AsyncIterator[bytes]:
        """Read a piece at a time."""
        size: int | None = await self._database.read(lambda c: c.execute(_size_of(file_id)).scalar())
        ordinal = given = 0
        while size is None or given < size:
            query = select(_piece.c.body).where(_piece.c.file_id == file_id, _piece.c.ordinal == ordinal)
            body: bytes | None = await self._database.read(lambda c, query=query: c.execute(query).scalar())
            if size is None or body is None:
                raise NotFound("There is no such file.", param="file_id")
            yield body
            ordinal, given = ordinal + 1, given + len(body)

    async def remove(self, file_id: str) -> bool:
        """Mark a file as removed."""
        return await self._withdraw(_file.c.id == file_id, _IS_STORED)

    async def leftovers(self, untouched_since: datetime, most: int) -> tuple[str, ...]:
        """Return removed files and broken uploads, the oldest first."""
        is_broken = and_(_file.c.state == tables.STORING, _file.c.touched_at < untouched_since)
        is_due = and_(_file.c.state == tables.REMOVED, _file.c.touched_at <= self._clock.now())
        query = select(_file.c.id).where(or_(is_due, is_broken))
        query = query.order_by(_file.c.touched_at, _file.c.id).limit(most)
        return tuple(await self._database.read(lambda connection: connection.execute(query).scalars().all()))

    async def postpone(self, file_id: str, until: datetime) -> None:
        """Set the instant by which `leftovers` orders removed files."""
        later = update(_file).where(_file.c.id == file_id, ~_IS_STORED).values(state=tables.REMOVED, touched_at=until)
        await self._database.write(lambda connection: connection.execute(later))

    async def purge(self, file_id: str) -> None:
        """Delete the pieces one by one, then the row; an upload that goes on after all finds its file removed."""
        if not await self._withdraw(_file.c.id == file_id, ~_IS_STORED):
            return
        is_last = select(func.max(_piece.c.ordinal)).where(_piece.c.file_id == file_id).scalar_subquery()
        last = delete(_piece).where(_piece.c.file_id == file_id, _piece.c.ordinal == is_last)
        while await self._database.write(lambda connection: connection.execute(last).rowcount):
            continue
        row = delete(_file).where(_file.c.id == file_id, ~_IS_STORED)
        await self._database.write(lambda connection: connection.execute(row))

    async def _withdraw(self, *which: ColumnElement[bool]) -> bool:
        """Mark a file as removed; False where there is none of this kind."""
        removed = update(_file).where(*which).values(state=tables.REMOVED, touched_at=self._clock.now())
        return bool(await self._database.write(lambda connection: connection.execute(removed).rowcount))

    def _begin(self, connection: Connection, file: StoredFile, quota: FileQuota) -> None:
        lock_name(connection, f"files/{file.tenant}/{file.user_id}")
        is_own = (_file.c.tenant == file.tenant) & (_file.c.user_id == file.user_id)
        summed = func.coalesce(func.sum(_file.c.size_bytes), 0)
        counted = select(func.count(), summed).where(is_own, _file.c.state != tables.REMOVED)
        files, size_bytes = connection.execute(counted).one()
        quota.check(files, size_bytes, file.size_bytes)
        state = {"state": tables.STORING, "touched_at": self._clock.now()}
        connection.execute(insert(_file), {**file.model_dump(), "purpose": file.purpose.value, **state})

    def _show(self, connection: Connection, file_id: str, claim: KeyClaim | None) -> None:
        self._set_state(connection, file_id, tables.STORED)
        take_key(connection, claim)

    def _set_state(self, connection: Connection, file_id: str, state: str) -> None:
        statement = update(_file).where(_file.c.id == file_id, _file.c.state == tables.STORING)
        if not connection.execute(statement.values(state=state, touched_at=self._clock.now())).rowcount:
            raise NotFound("The file was deleted while it was stored.", param="file")


def _page(connection: Connection, query: FileQuery) -> tuple[StoredFile, ...]:
    found = select(*_COLUMNS).where(_is_of(query), _IS_STORED)
    if query.purpose is not None:
        found = found.where(_file.c.purpose == query.purpose)
    page = query.page
    if page.after is not None:
        found = found.where(_is_behind(connection, query))
    order = rows_in_order(_PLACE, descending=page.descending)
    rows = connection.execute(found.order_by(*order).limit(page.limit + 1)).mappings()
    return tuple(_to_file(row) for row in rows)


def _is_of(query: FileQuery) -> ColumnElement[bool]:
    return (_file.c.tenant == query.tenant) & (_file.c.user_id == query.user_id)


def _is_behind(connection: Connection, query: FileQuery) -> ColumnElement[bool]:
    """Select the files behind the one that `after` names."""
    last = select(*_PLACE).where(_is_of(query), _file.c.id == query.page.after, _IS_STORED)
    row = connection.execute(last).first()
    if row is None:
        raise NotFound("There is no such file.", param="after")
    return follows_row(_PLACE, *row, descending=query.page.descending)


def _size_of(file_id: str) -> Select[Any]:
    return select(_file.c.size_bytes).where(_file.c.id == file_id, _IS_STORED)


def _to_file(row: RowMapping) -> StoredFile:
    return StoredFile.model_validate({name: row[name] for name in StoredFile.model_fields})
