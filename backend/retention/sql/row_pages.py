"""Rows that are looked at page by page, and removed."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Delete, Table, Update, delete, select, update

from backend.files.sql.tables import REMOVED, uploaded_file
from backend.retention.domain import DuePage
from shared.clock import Clock

ROWS_LOOKED_AT = 500
"""Read at once: no row of these is wide where it is looked at."""


def look_through(table: Table, which: ColumnElement[bool], after: str, connection: Connection) -> DuePage:
    """Look at a page of rows in the order of their ids, and return those that are selected."""
    page = select(table.c.id).where(table.c.id > after).order_by(table.c.id).limit(ROWS_LOOKED_AT)
    ids = connection.execute(page).scalars().all()
    if not ids:
        return DuePage((), None)
    found = select(table.c.id).where(table.c.id > after, table.c.id <= ids[-1], which).order_by(table.c.id)
    return DuePage(tuple(connection.execute(found).scalars().all()), ids[-1])


def remove_rows(table: Table, which: ColumnElement[bool], clock: Clock, ids: Sequence[str]) -> Delete | Update:
    """Build the statement that removes those of some rows that are selected; files are cleared later."""
    these = which & table.c.id.in_(ids)
    if table is uploaded_file:
        return update(table).where(these).values(state=REMOVED, touched_at=clock.now())
    return delete(table).where(these)
