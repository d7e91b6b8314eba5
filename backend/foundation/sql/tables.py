"""The table of idempotency keys."""

from sqlalchemy import Column, Index, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

# `id` and `fingerprint` are keyed hashes, of the caller and their key, and of the request; `created` names what the
# request has created.
idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("id", Text, primary_key=True),
    require("fingerprint", Text),
    require("created", Text),
    require("claimed_at", Instant),
    Index(None, "claimed_at"),
)
