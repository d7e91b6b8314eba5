"""The choice of the search index by database."""

from backend.adapters.sql.database import Database
from backend.adapters.sql.knowledge.search_index import SearchIndex
from shared.loading import load

_INDEXES = {
    "sqlite": "backend.adapters.sql.knowledge.sqlite_index:SqliteIndex",
    "postgresql": "backend.adapters.sql.knowledge.postgres_index:PostgresIndex",
}


def search_index(database: Database) -> SearchIndex:
    """Return the index that this database can hold."""
    index: SearchIndex = load(_INDEXES[database.dialect])()
    return index
