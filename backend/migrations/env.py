"""Alembic's entry: it upgrades over the connection that it is given, in the transaction of that connection."""

from alembic import context

from backend.migrations.tables import metadata
from backend.search.sql.tables import SEARCH_PREFIX

_VERSION_TABLES = ("schema_revision", "alembic_version")


def _is_compared(name: str | None, kind: str, _parents: object) -> bool:
    """Leave out the tables of versions, and what only one database has for its search, as FTS5's shadow tables."""
    return kind != "table" or name is None or not (name.startswith(SEARCH_PREFIX) or name in _VERSION_TABLES)


_given = context.config.attributes
context.configure(
    connection=_given["connection"],
    version_table=_given["version_table"],
    target_metadata=metadata,
    include_name=_is_compared,
)
context.run_migrations()
