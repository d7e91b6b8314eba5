"""Knowledge bases, members, documents, chunks, and what search needs beside them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_FULL_TEXT_TABLES = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE search%'"


def upgrade() -> None:
    _create_bases()
    _create_members()
    _create_documents()
    _create_chunks()
    if op.get_bind().dialect.name == "sqlite":
        _create_term_counts()
    else:
        _create_postings()


def downgrade() -> None:
    """Drop the search tables of all bases, too: on SQLite each has a full-text table, which drops its own parts."""
    if op.get_bind().dialect.name == "sqlite":
        for (name,) in op.get_bind().execute(sa.text(_FULL_TEXT_TABLES)).all():
            op.execute(f'DROP TABLE "{name}"')
        op.drop_table("search_term")
    else:
        op.drop_table("search_posting")
    for table in ("chunk", "document", "knowledge_member", "knowledge_base"):
        op.drop_table(table)


def _create_bases() -> None:
    op.create_table(
        "knowledge_base",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("topics", sa.Text, nullable=False),
        sa.Column("routing_hint", sa.Text, nullable=False),
        sa.Column("routing_keywords", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
        sa.Column("index_token_count", sa.BigInteger, nullable=False),
        sa.Column("next_chunk_number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_knowledge_base"),
    )


def _create_members() -> None:
    op.create_table(
        "knowledge_member",
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", "user_id", name="pk_knowledge_member"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"],
            ["knowledge_base.id"],
            name="fk_knowledge_member_knowledge_base_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_knowledge_member_user_id", "knowledge_member", ["user_id"])


def _create_documents() -> None:
    op.create_table(
        "document",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_document"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_document_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_document_knowledge_base_id_name", "document", ["knowledge_base_id", "name"], unique=True)


def _create_chunks() -> None:
    op.create_table(
        "chunk",
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("heading_path", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("document_id", "ordinal", name="pk_chunk"),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name="fk_chunk_document_id", ondelete="CASCADE"),
    )
    op.create_index("ix_chunk_knowledge_base_id_number", "chunk", ["knowledge_base_id", "number"], unique=True)


def _create_term_counts() -> None:
    op.execute("""
        CREATE TABLE search_term (
            knowledge_base_id TEXT NOT NULL, term TEXT NOT NULL, chunk_count INTEGER NOT NULL,
            PRIMARY KEY (knowledge_base_id, term)
        ) WITHOUT ROWID
    """)


def _create_postings() -> None:
    op.execute("""
        CREATE TABLE search_posting (
            knowledge_base_id text NOT NULL, term text COLLATE "C" NOT NULL, block integer NOT NULL,
            postings bytea NOT NULL,
            PRIMARY KEY (knowledge_base_id, term, block)
        ) WITH (fillfactor = 70)
    """)
    op.execute("ALTER TABLE search_posting ALTER COLUMN postings SET STORAGE PLAIN")
