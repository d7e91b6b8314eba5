"""The table of vectors, of which each database has its own: PostgreSQL's takes the extension pgvector.

A vector is stored in half precision, beside the SHA-256 of its text; it is NULL where the model refuses the text.
"""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from shared.environment import cause_of

_SQLITE = (
    """
    CREATE TABLE IF NOT EXISTS search_vector (
        id INTEGER PRIMARY KEY AUTOINCREMENT, space_id INTEGER NOT NULL, number INTEGER NOT NULL, digest BLOB NOT NULL,
        vector BLOB, UNIQUE (space_id, number)
    )
    """,
    "CREATE INDEX IF NOT EXISTS ix_search_vector_space_id_digest ON search_vector (space_id, digest)",
    "CREATE INDEX IF NOT EXISTS ix_search_vector_space_id ON search_vector (space_id)",
)
# Vectors stay in the row: out of it, each comparison would read another table.
_POSTGRESQL = (
    """
    CREATE TABLE IF NOT EXISTS search_vector (
        space_id integer NOT NULL, number integer NOT NULL, digest bytea NOT NULL, vector halfvec,
        PRIMARY KEY (space_id, number)
    )
    """,
    "ALTER TABLE search_vector ALTER COLUMN vector SET STORAGE PLAIN",
    "CREATE INDEX IF NOT EXISTS ix_search_vector_space_id_digest ON search_vector (space_id, digest)",
)
_OLDEST_EXTENSION = (0, 8)
_INSTALLED = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
_AVAILABLE = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"


def has_vector_table(connection: Connection) -> bool:
    """Say whether vectors can be stored."""
    if connection.dialect.name == "sqlite":
        return connection.dialect.has_table(connection, "search_vector")
    return connection.execute(text("SELECT to_regclass('search_vector')")).scalar() is not None


def make_vector_table(connection: Connection) -> str | None:
    """Make the table of vectors unless it is there; return what the database lacks for that, None where nothing."""
    if has_vector_table(connection):
        return None
    statements = _SQLITE
    if connection.dialect.name == "postgresql":
        missing = _install_extension(connection)
        if missing is not None:
            return missing
        statements = _POSTGRESQL
    for statement in statements:
        connection.execute(text(statement))
    return None


def lack_of_vectors(connection: Connection) -> str | None:
    """Return what a database lacks so that it can store vectors, without installing anything; None where nothing."""
    if connection.dialect.name == "sqlite" or has_vector_table(connection):
        return None
    version = connection.execute(text(_INSTALLED)).scalar() or connection.execute(text(_AVAILABLE)).scalar()
    return f"pgvector 0.8 or newer; the database has {version or 'none'}" if _is_too_old(version) else None


def _is_too_old(version: object) -> bool:
    numbers = tuple(int(each) for each in str(version or "0").split(".")[:2])
    return numbers < _OLDEST_EXTENSION


def _install_extension(connection: Connection) -> str | None:
    """Install the extension where it is not; return what is missing where that fails."""
    version = connection.execute(text(_INSTALLED)).scalar()
    if version is None:
        try:
            with connection.begin_nested():
                connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        except DBAPIError as error:
            return (
                f"the extension vector of PostgreSQL, which could not be created ({cause_of(error)}): install pgvector"
                " 0.8 or newer, and run CREATE EXTENSION vector as a user who may"
            )
        version = connection.execute(text(_INSTALLED)).scalar()
    return f"pgvector 0.8 or newer; the database has {version}" if _is_too_old(version) else None
