"""The search index of the release before, as far as that release needs it to run.

It kept the tokens of each chunk in a full-text table of the base (SQLite), or rows of postings (PostgreSQL).
"""

from sqlalchemy import Connection, text

from backend.foundation.sql.statements import driver_of
from backend.search.domain.chunks import Range
from backend.search.sql.tables import SEARCH_PREFIX

_DROP_POSTINGS = text("DELETE FROM search_posting WHERE knowledge_base_id = :base_id")
_FIND_TABLE = "SELECT 1 FROM sqlite_master WHERE name = ?"


def open_base(connection: Connection, base_id: str) -> None:
    """Make the tables without which the release before cannot search a base."""
    if not connection.dialect.is_async:
        driver_of(connection).execute(f"CREATE VIRTUAL TABLE {table_of(base_id)} USING fts5(tokens, tokenize='ascii')")


def drop_base(connection: Connection, base_id: str) -> None:
    """Delete what that release keeps of a base."""
    if connection.dialect.is_async:
        connection.execute(_DROP_POSTINGS, {"base_id": base_id})
    else:
        driver_of(connection).execute(f"DROP TABLE IF EXISTS {table_of(base_id)}")
        driver_of(connection).execute("DELETE FROM search_term WHERE knowledge_base_id = ?", (base_id,))


def remove(connection: Connection, base_id: str, numbers: Range) -> None:
    """Remove chunks from the full-text table; the postings on PostgreSQL keep them, and find nothing by them."""
    if not connection.dialect.is_async and has_table(connection, base_id):
        deletion = f"DELETE FROM {table_of(base_id)} WHERE rowid >= ? AND rowid < ?"  # noqa: S608
        driver_of(connection).execute(deletion, numbers)


def has_table(connection: Connection, base_id: str) -> bool:
    """Tell whether a base has a full-text table."""
    return driver_of(connection).execute(_FIND_TABLE, (SEARCH_PREFIX + base_id,)).fetchone() is not None


def table_of(base_id: str) -> str:
    """Quote the name of a base's table: ids are ours, and no id can break out of the quotes."""
    return '"' + (SEARCH_PREFIX + base_id).replace('"', '""') + '"'
