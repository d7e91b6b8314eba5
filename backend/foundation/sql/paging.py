"""Pages of rows that are ordered by when they were made, and among equals by their ids."""

from datetime import datetime

from sqlalchemy import ColumnElement, literal, tuple_

RowPlace = tuple[ColumnElement[datetime], ColumnElement[str]]
"""The columns of the instant and of the id."""


def rows_in_order(place: RowPlace, *, descending: bool) -> list[ColumnElement[datetime] | ColumnElement[str]]:
    """Return what to order by: the oldest first, or else the newest."""
    return [column.desc() if descending else column for column in place]


def follows_row(place: RowPlace, created_at: datetime, row_id: str, *, descending: bool) -> ColumnElement[bool]:
    """Return the condition of rows that follow one in this order."""
    here, there = tuple_(*place), tuple_(literal(created_at, place[0].type), row_id)
    return here < there if descending else here > there
