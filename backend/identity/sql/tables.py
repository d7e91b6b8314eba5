"""The table of API keys."""

from sqlalchemy import Column, Table, Text

from backend.foundation.sql.schema import Instant, metadata, required

api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True),
    required("key_hash", Text, unique=True),
    required("user_id", Text),
    required("tenant", Text),
    required("role", Text),
    required("created_at", Instant),
)
