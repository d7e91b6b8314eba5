"""The tables of bases, their members, documents and attached files."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    false,
    text,
    true,
)

from backend.foundation.sql.schema import Instant, metadata, require

# chunk_count and index_token_count are what BM25 needs; a value of next_chunk_number is never used twice.
# indexed_version grows with version, but not where the release before changes a base: then segments may hold chunks
# that are deleted.
_IS_CHANGED = text("indexed_version IS NULL OR indexed_version <> version")
knowledge_base = Table(
    "knowledge_base",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("name", Text),
    require("summary", Text),
    require("topics", Text),
    require("routing_hint", Text),
    require("routing_keywords", Text),
    require("version", Integer),
    require("created_at", Instant),
    require("chunk_count", Integer),
    require("index_token_count", BigInteger),
    require("next_chunk_number", Integer),
    require("restricted_translation", Boolean, server_default=false()),
    Column("indexed_version", Integer),
    Column("metadata", Text),
    Column("last_active_at", Instant),
    require("embed", Boolean, server_default=true()),
    Column("restricted_grade", Text),
    Column("support", Integer),
    Column("content", Text),
    Index("ix_knowledge_base_changed", "id", sqlite_where=_IS_CHANGED, postgresql_where=_IS_CHANGED),
)

knowledge_member = Table(
    "knowledge_member",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    require("role", Text),
    Index(None, "user_id"),
)

SHOWN_COLUMNS = (
    "knowledge_base_id",
    "edition_id",
    "id",
    "name",
    "chunk_count",
    "file_id",
    "filename",
    "attributes",
    "sha256",
)
"""What searches read of documents, as an index of SQLite has it.

In the table some of it stands behind the body, whose pages a reader follows for each chunk that is found. PostgreSQL
keeps bodies apart.
"""

# `indexed_edition_id` is the edition of the document that is in the segments of the index, with so many index tokens;
# the release before replaces the edition and leaves this column as it is. `file_id` and `filename` name the uploaded
# file that a document was read from.
# The body stands behind: SQLite reads a row from the left and stops where it has enough.
_IS_UNINDEXED = text("indexed_edition_id IS NULL OR indexed_edition_id <> edition_id")
document = Table(
    "document",
    metadata,
    Column("id", Text, primary_key=True),
    require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    require("name", Text),
    require("edition_id", Text, unique=True),
    require("media_type", Text),
    require("sha256", Text),
    require("size_bytes", Integer),
    require("chunk_count", Integer),
    require("created_at", Instant),
    require("body", LargeBinary),
    Column("indexed_edition_id", Text),
    Column("index_token_count", BigInteger),
    Column("file_id", Text),
    Column("filename", Text),
    Column("attributes", Text),
    Column("notes", Text),
    Column("reader_version", Integer),
    Column("charset", Text),
    Column("unread_pictures", Integer, nullable=False, server_default="0"),
    Index(None, "knowledge_base_id", "name", unique=True),
    Index(None, "file_id"),
    Index("ix_document_unindexed", "knowledge_base_id", sqlite_where=_IS_UNINDEXED, postgresql_where=_IS_UNINDEXED),
    Index("ix_document_shown", *SHOWN_COLUMNS).ddl_if(dialect="sqlite"),
)

# Files on their way to becoming documents, and those that did not become one. The reader of a file holds a lease on its
# row, in the time of the database; `fence` grows with each lease, so that an earlier holder changes nothing any more.
_IS_WAITING = text("status = 'in_progress'")
attachment = Table(
    "attachment",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("file_id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("filename", Text),
    require("status", Text),
    require("attributes", Text),
    Column("error_code", Text),
    Column("error_message", Text),
    require("created_at", Instant),
    require("attempts", Integer),
    require("fence", Integer),
    Column("leased_until", Instant),
    Index(None, "file_id"),
    Index(
        "ix_attachment_waiting",
        *("tenant", "user_id", "created_at"),
        sqlite_where=_IS_WAITING,
        postgresql_where=_IS_WAITING,
    ),
)

# Files that were attached together.
file_batch = Table(
    "file_batch",
    metadata,
    Column("id", Text, primary_key=True),
    require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    require("created_at", Instant),
    require("is_cancelled", Boolean),
    Index(None, "knowledge_base_id"),
)
file_batch_member = Table(
    "file_batch_member",
    metadata,
    Column("batch_id", Text, ForeignKey("file_batch.id", ondelete="CASCADE"), primary_key=True),
    Column("file_id", Text, primary_key=True),
)

# `number` identifies a chunk within its base, in order of storing. A chunk belongs to the document that names its
# edition; the chunks of an edition that is being written or deleted belong to none.
chunk = Table(
    "chunk",
    metadata,
    Column("edition_id", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    require("id", Text),
    require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    require("number", Integer),
    require("tokens", Integer),
    require("heading_path", Text),
    require("text", Text),
    Column("place", Text),
    Index(None, "knowledge_base_id", "number", unique=True),
)

# Editions that no document names, with the numbers of their chunks; few, and none for long. Of their words those up
# to `counted_to` are in the counts of the search index.
unseen_edition = Table(
    "unseen_edition",
    metadata,
    Column("edition_id", Text, primary_key=True),
    require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    require("first_number", Integer),
    require("end_number", Integer),
    require("counted_to", Text),
    require("is_leaving", Boolean),
    require("touched_at", Instant),
    Index(None, "knowledge_base_id"),
)
