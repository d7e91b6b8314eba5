"""The tables of files."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

STORING, STORED, REMOVED = "storing", "stored", "removed"
"""The states of a file; only a stored one is found."""

# The name avoids a word that some databases reserve.
uploaded_file = Table(
    "uploaded_file",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("filename", Text),
    require("purpose", Text),
    Column("content_type", Text),
    require("size_bytes", Integer),
    require("sha256", Text),
    require("created_at", Instant),
    require("state", Text),
    require("touched_at", Instant),
    Index(None, "tenant", "user_id", "created_at", "id"),
    Index(None, "state", "touched_at"),
)

# The bytes of a file in pieces, so that no statement takes long.
file_piece = Table(
    "file_piece",
    metadata,
    Column("file_id", Text, ForeignKey("uploaded_file.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    require("body", LargeBinary),
)
