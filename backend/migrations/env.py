"""Alembic's entry: it upgrades over the connection that it is given, in the transaction of that connection."""

from alembic import context

from backend.knowledge.sql.tables import SEARCH_PREFIX
from backend.migrations.tables import metadata


def _is_compared(name: str | None, kind: str, _parents: object) -> bool:
    """Leave out what only one database has for its search, FTS5's shadow tables among it."""
    return kind != "table" or name is None or not name.startswith(SEARCH_PREFIX)


context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, include_name=_is_compared
)
context.run_migrations()
