"""The tables of files."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from backend.foundation.sql.schema import Instant, metadata, required

STORING, STORED, REMOVED = "storing", "stored", "removed"
"""The states of a file; only a stored one is found."""

# The name avoids a word that some databases reserve.
uploaded_file = Table(
    "uploaded_file",
    metadata,
    Column("id", Text, primary_key=True),
    required("tenant", Text),
    required("user_id", Text),
    required("filename", Text),
    required("purpose", Text),
    Column("content_type", Text),
    required("size_bytes", Integer),
    required("sha256", Text),
    required("created_at", Instant),
    required("state", Text),
    required("touched_at", Instant),
    Index(None, "tenant", "user_id", "created_at", "id"),
    Index(None, "state", "touched_at"),
)

# The bytes of a file in pieces, so that no statement takes long.
file_piece = Table(
    "file_piece",
    metadata,
    Column("file_id", Text, ForeignKey("uploaded_file.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    required("body", LargeBinary),
)
