"""The choice of the search index by database."""

from backend.adapters.sql.database import Database
from backend.adapters.sql.knowledge.postgres_index import PostgresIndex
from backend.adapters.sql.knowledge.search_index import SearchIndex
from backend.adapters.sql.knowledge.sqlite_index import SqliteIndex


def search_index(database: Database) -> SearchIndex:
    """Return the index that this database can hold."""
    return SqliteIndex() if database.dialect == "sqlite" else PostgresIndex()
