"""The choice of the search index by database."""

import asyncio

from backend.foundation.sql.database import Database
from backend.knowledge.sql.search_index import SearchIndex
from shared.loading import load

_INDEXES = {
    "sqlite": "backend.knowledge.sql.sqlite_index:SqliteIndex",
    "postgresql": "backend.knowledge.sql.postgres_index:PostgresIndex",
}


class IndexOf:
    """The search index that a database can hold, loaded when it is first asked for: one of them takes NumPy along."""

    def __init__(self, database: Database) -> None:
        self._reference = _INDEXES[database.dialect]
        self._index: SearchIndex | None = None

    async def __call__(self) -> SearchIndex:
        """Return it; the first time a thread loads what it needs."""
        index = self._index
        if index is None:
            index = self._index = (await asyncio.to_thread(load, self._reference))()
        return index
