"""The table of API keys."""

from sqlalchemy import Column, Integer, Table, Text

from backend.foundation.sql.schema import Instant, metadata, required

# Without `expires_at` a key does not expire. `origin` is NULL in rows of the first release.
api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True),
    required("key_hash", Text, unique=True),
    required("user_id", Text),
    required("tenant", Text),
    required("role", Text),
    required("created_at", Instant),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("origin", Text),
    Column("replaced_by", Text),
    Column("turns_per_minute", Integer),
    Column("tokens_per_minute", Integer),
    Column("turns_at_once", Integer),
)
