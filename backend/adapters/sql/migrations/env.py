"""Alembic's entry: upgrades over the connection it is handed, in that connection's transaction."""

from alembic import context

from backend.adapters.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
