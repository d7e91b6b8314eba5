"""The tables of the search index, and what it reads of the tables of those who store bases and documents.

Tables that only one database has (SQLite one full-text table per base and the word counts, PostgreSQL the postings)
have names beginning with `search_`, are made by plain SQL and left out of comparisons of schemas. They are the search
index of the release before, which may run beside this one and after it: this release reads them where a document is
in no other index, and keeps what that release needs to run.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    TableClause,
    Text,
    UniqueConstraint,
    column,
    table,
    text,
)
from sqlalchemy.types import TypeEngine

from backend.foundation.sql.schema import Instant, metadata, require

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


def _read(name: str, /, **columns: type[TypeEngine[Any]]) -> TableClause:
    return table(name, *(column(each, kind) for each, kind in columns.items()))


_COUNTS = {"chunk_count": Integer, "index_token_count": BigInteger}
_NUMBERS = {"version": Integer, "indexed_version": Integer, "next_chunk_number": Integer}
_VERSION = {"edition_id": Text, "knowledge_base_id": Text}
knowledge_base = _read("knowledge_base", id=Text, last_active_at=Instant, embed=Boolean, **_COUNTS, **_NUMBERS)
_NAMES = dict.fromkeys(("id", "name", "indexed_edition_id", "sha256", "file_id", "filename", "attributes"), Text)
document = _read("document", **_VERSION, **_NAMES, **_COUNTS)
_PLACE = dict.fromkeys(("ordinal", "number", "tokens"), Integer)
chunk = _read("chunk", id=Text, heading_path=Text, text=Text, place=Text, **_VERSION, **_PLACE)
unseen_edition = _read("unseen_edition", first_number=Integer, end_number=Integer, is_leaving=Boolean, **_VERSION)
READ_TABLES = (knowledge_base, document, chunk, unseen_edition)
"""What the index reads of tables that are not its own, and counts in them of what it holds."""

IS_UNINDEXED = (document.c.indexed_edition_id.is_(None)) | (document.c.indexed_edition_id != document.c.edition_id)
"""Selects the documents that are in no segment: written by the release before."""

UNINDEXED_HINT = "INDEXED BY ix_document_unindexed"
"""Makes SQLite take the index that holds these alone: any other one lets it look behind the body of each document."""

IS_CHANGED = knowledge_base.c.indexed_version.is_(None) | (knowledge_base.c.indexed_version != knowledge_base.c.version)
"""Selects the bases that the release before has changed: segments may hold chunks that it has deleted."""

# A segment of the search index covers chunks with numbers from `first_number` to before `end_number`, and no other
# visible segment covers these; `chunk_count` of them were there when it was written. Segments that are being written or
# deleted are not visible. `tokens_version` is that of the oldest tokens in it; the release before names none.
index_segment = Table(
    "index_segment",
    metadata,
    Column("id", _KEY, primary_key=True),
    require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE")),
    require("first_number", Integer),
    require("end_number", Integer),
    require("chunk_count", Integer),
    require("bits", Integer),
    require("is_visible", Boolean),
    require("touched_at", Instant),
    require("lengths", LargeBinary),
    require("tokens_version", Integer, server_default="1"),
    Index(None, "knowledge_base_id", "first_number"),
    Index(None, "tokens_version"),
    sqlite_autoincrement=True,
)

# Pages of segments. The key holds the segment in the bits from `PAGE_BITS` on, so that it needs no second index.
PAGE_BITS = 20
index_page = Table(
    "index_page",
    metadata,
    Column("id", _KEY, primary_key=True, autoincrement=False),
    require("postings", LargeBinary),
)

# Numbers of deleted chunks that still are in a visible segment.
index_gone = Table(
    "index_gone",
    metadata,
    Column("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), primary_key=True),
    Column("first_number", Integer, primary_key=True, autoincrement=False),
    require("end_number", Integer),
)

# The vectors of one base by one model; only these are compared with each other. Vectors themselves are in the table
# `search_vector`, which `vector_schema` makes. `removals` grows when some are deleted. Nothing refers to the base: its
# vectors are deleted in small steps after it.
vector_space = Table(
    "vector_space",
    metadata,
    Column("id", Integer, primary_key=True),
    require("knowledge_base_id", Text),
    require("model", Text),
    require("dimension", Integer),
    require("removals", Integer),
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
    require("first_number", Integer),
    require("end_number", Integer),
    require("waiting_chunks", Integer),
    require("embedded_chunks", Integer),
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
    require("digest", LargeBinary),
    require("leased_until", Instant),
)

# Chunks of which an engine beside the database is to be told: what documents have of them, whatever happened. A process
# that tells it holds the row until `held_until`; from `shown_at` on searches by the engine see it, and the row goes.
# Nothing refers to the base: the engine is told of it after it is gone.
engine_change = Table(
    "engine_change",
    metadata,
    Column("id", _KEY, primary_key=True),
    require("knowledge_base_id", Text),
    require("first_number", Integer),
    require("end_number", Integer),
    Column("held_until", Instant),
    Column("shown_at", Instant),
    Index(None, "knowledge_base_id"),
    sqlite_autoincrement=True,
)
