"""The choice of the search index by database."""

import asyncio

from backend.foundation.sql.database import Database
from backend.knowledge.sql.search_index import SearchIndex


class ChosenIndex:
    """The search index for a database, loaded at its first use: the index for PostgreSQL needs NumPy."""

    def __init__(self, database: Database) -> None:
        self._dialect = database.dialect
        self._index: SearchIndex | None = None

    async def __call__(self) -> SearchIndex:
        """Return the index; the first call loads it in a thread."""
        if self._index is None:
            self._index = await asyncio.to_thread(_index_for, self._dialect)
        return self._index


def _index_for(dialect: str) -> SearchIndex:
    if dialect == "postgresql":
        from backend.knowledge.sql.postgres_index import PostgresIndex

        return PostgresIndex()
    from backend.knowledge.sql.sqlite_index import SqliteIndex

    return SqliteIndex()
