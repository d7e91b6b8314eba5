"""The tables of knowledge.

Tables that only one database has for its search (SQLite one full-text table per base and the word counts, PostgreSQL
the postings) have names beginning with `search_`, are made by plain SQL and left out of comparisons of schemas.
"""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, false

from backend.foundation.sql.schema import Instant, metadata, required

__all__ = [
    "SEARCH_PREFIX",
    "SEARCH_TABLES",
    "chunk",
    "document",
    "knowledge_base",
    "knowledge_member",
    "unseen_edition",
]

SEARCH_PREFIX = "search_"

# A row of postings is updated again and again while its block of chunks fills, so its page keeps room for it.
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
    ),
}

# chunk_count and index_token_count are what BM25 needs; a value of next_chunk_number is never used twice.
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
)

knowledge_member = Table(
    "knowledge_member",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    required("role", Text),
    Index(None, "user_id"),
)

# The body stands last: SQLite reads a row from the left and stops where it has enough.
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
    Index(None, "knowledge_base_id", "name", unique=True),
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
