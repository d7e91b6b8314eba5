"""The tables of knowledge.

Tables that only one database has (SQLite one full-text table per base and the word counts, PostgreSQL the postings)
have names beginning with `search_`, are made by plain SQL and left out of comparisons of schemas. They are the search
index of the release before, which may run beside this one and after it: this release reads them where a document is
in no other index, and keeps what that release needs to run.
"""

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
    UniqueConstraint,
    false,
    text,
    true,
)

from backend.foundation.sql.schema import Instant, metadata, required

__all__ = [
    "SEARCH_PREFIX",
    "SEARCH_TABLES",
    "attachment",
    "chunk",
    "chunk_claim",
    "document",
    "edition_vectors",
    "file_batch",
    "file_batch_member",
    "index_gone",
    "index_page",
    "index_segment",
    "knowledge_base",
    "knowledge_member",
    "unseen_edition",
    "vector_space",
]

SEARCH_PREFIX = "search_"

_KEY = BigInteger().with_variant(Integer, "sqlite")

# A row of postings is updated again and again while its block of chunks fills, so its page keeps room for it. Packed
# numbers do not become smaller when PostgreSQL compresses them.
SEARCH_TABLES = {
    "sqlite": (
        """
        CREATE TABLE search_term (
            knowledge_base_id TEXT NOT NULL, term TEXT NOT NULL, chunk_count INTEGER NOT NULL,
            PRIMARY KEY (knowledge_base_id, term)
        ) WITHOUT ROWID
        """,
    ),
    "postgresql": (
        """
        CREATE TABLE search_posting (
            knowledge_base_id text NOT NULL, term text COLLATE "C" NOT NULL, block integer NOT NULL,
            postings bytea NOT NULL,
            PRIMARY KEY (knowledge_base_id, term, block)
        ) WITH (fillfactor = 70)
        """,
        "ALTER TABLE search_posting ALTER COLUMN postings SET STORAGE PLAIN",
        "ALTER TABLE index_page ALTER COLUMN postings SET STORAGE EXTERNAL",
        "ALTER TABLE index_segment ALTER COLUMN lengths SET STORAGE EXTERNAL",
    ),
}

# chunk_count and index_token_count are what BM25 needs; a value of next_chunk_number is never used twice.
# indexed_version grows with version, but not where the release before changes a base: then segments may hold chunks
# that are deleted.
_IS_CHANGED = text("indexed_version IS NULL OR indexed_version <> version")
knowledge_base = Table(
    "knowledge_base",
    metadata,
    Column("id", Text, primary_key=True),
    required("tenant", Text),
    required("name", Text),
    required("summary", Text),
    required("topics", Text),
    required("routing_hint", Text),
    required("routing_keywords", Text),
    required("version", Integer),
    required("created_at", Instant),
    required("chunk_count", Integer),
    required("index_token_count", BigInteger),
    required("next_chunk_number", Integer),
    required("restricted_translation", Boolean, server_default=false()),
    Column("indexed_version", Integer),
    Column("metadata", Text),
    Column("last_active_at", Instant),
    required("embed", Boolean, server_default=true()),
    Index("ix_knowledge_base_changed", "id", sqlite_where=_IS_CHANGED, postgresql_where=_IS_CHANGED),
)

knowledge_member = Table(
    "knowledge_member",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    required("role", Text),
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
    required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    required("name", Text),
    required("edition_id", Text, unique=True),
    required("media_type", Text),
    required("sha256", Text),
    required("size_bytes", Integer),
    required("chunk_count", Integer),
    required("created_at", Instant),
    required("body", LargeBinary),
    Column("indexed_edition_id", Text),
    Column("index_token_count", BigInteger),
    Column("file_id", Text),
    Column("filename", Text),
    Column("attributes", Text),
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
    required("tenant", Text),
    required("user_id", Text),
    required("filename", Text),
    required("status", Text),
    required("attributes", Text),
    Column("error_code", Text),
    Column("error_message", Text),
    required("created_at", Instant),
    required("attempts", Integer),
    required("fence", Integer),
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
    required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    required("created_at", Instant),
    required("is_cancelled", Boolean),
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
    required("id", Text),
    required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    required("number", Integer),
    required("tokens", Integer),
    required("heading_path", Text),
    required("text", Text),
    Index(None, "knowledge_base_id", "number", unique=True),
)

# Editions that no document names, with the numbers of their chunks; few, and none for long. Of their words those up
# to `counted_to` are in the counts of the search index.
unseen_edition = Table(
    "unseen_edition",
    metadata,
    Column("edition_id", Text, primary_key=True),
    required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    required("first_number", Integer),
    required("end_number", Integer),
    required("counted_to", Text),
    required("is_leaving", Boolean),
    required("touched_at", Instant),
    Index(None, "knowledge_base_id"),
)

# A segment of the search index covers chunks with numbers from `first_number` to before `end_number`, and no other
# visible segment covers these; `chunk_count` of them were there when it was written. Segments that are being written or
# deleted are not visible.
index_segment = Table(
    "index_segment",
    metadata,
    Column("id", _KEY, primary_key=True),
    required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    required("first_number", Integer),
    required("end_number", Integer),
    required("chunk_count", Integer),
    required("bits", Integer),
    required("is_visible", Boolean),
    required("touched_at", Instant),
    required("lengths", LargeBinary),
    Index(None, "knowledge_base_id", "first_number"),
    sqlite_autoincrement=True,
)

# Pages of segments. The key holds the segment in the bits from `PAGE_BITS` on, so that it needs no second index.
PAGE_BITS = 20
index_page = Table(
    "index_page",
    metadata,
    Column("id", _KEY, primary_key=True, autoincrement=False),
    required("postings", LargeBinary),
)

# Numbers of deleted chunks that still are in a visible segment.
index_gone = Table(
    "index_gone",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("first_number", Integer, primary_key=True, autoincrement=False),
    required("end_number", Integer),
)

# The vectors of one base by one model; only these are compared with each other. Vectors themselves are in the table
# `search_vector`, which `vector_schema` makes. `removals` grows when some are deleted. Nothing refers to the base: its
# vectors are deleted in small steps after it.
vector_space = Table(
    "vector_space",
    metadata,
    Column("id", Integer, primary_key=True),
    required("knowledge_base_id", Text),
    required("model", Text),
    required("dimension", Integer),
    required("removals", Integer),
    UniqueConstraint("knowledge_base_id", "model", "dimension"),
    sqlite_autoincrement=True,
)

# How far an edition has been embedded: its chunks that wait, and those that have a vector. What is in neither count was
# refused by the model.
_HAS_WAITING = text("waiting_chunks > 0")
edition_vectors = Table(
    "edition_vectors",
    metadata,
    Column("space_id", Integer, primary_key=True, autoincrement=False),
    Column("edition_id", Text, primary_key=True),
    required("first_number", Integer),
    required("end_number", Integer),
    required("waiting_chunks", Integer),
    required("embedded_chunks", Integer),
    Index("ix_edition_vectors_edition_id", "edition_id"),
    Index(
        "ix_edition_vectors_waiting",
        *("space_id", "first_number"),
        sqlite_where=_HAS_WAITING,
        postgresql_where=_HAS_WAITING,
    ),
)

# Chunks whose texts a process has taken to have them embedded, in the time of the database.
chunk_claim = Table(
    "chunk_claim",
    metadata,
    Column("space_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    required("digest", LargeBinary),
    required("leased_until", Instant),
)
