"""The table of API keys."""

from sqlalchemy import Column, Integer, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

# Without `expires_at` a key does not expire. `origin` is NULL in rows of the first release. A key with a
# `session_subject` is that of a browser in which this subject of the identity provider signed in.
api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True),
    require("key_hash", Text, unique=True),
    require("user_id", Text),
    require("tenant", Text),
    require("role", Text),
    require("created_at", Instant),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("origin", Text),
    Column("replaced_by", Text),
    Column("turns_per_minute", Integer),
    Column("tokens_per_minute", Integer),
    Column("turns_at_once", Integer),
    Column("session_subject", Text, index=True),
    Column("session_id", Text, index=True),
)
