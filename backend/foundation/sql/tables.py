"""The table of idempotency keys."""

from sqlalchemy import Column, Index, Table, Text

from backend.foundation.sql.schema import Instant, metadata, required

# `id` and `fingerprint` are keyed hashes, of the caller and their key, and of the request; `created` names what the
# request has created.
idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("id", Text, primary_key=True),
    required("fingerprint", Text),
    required("created", Text),
    required("claimed_at", Instant),
    Index(None, "claimed_at"),
)
