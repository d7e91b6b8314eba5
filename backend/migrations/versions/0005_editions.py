"""Editions of documents: chunks belong to an edition, which comes and goes unseen."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_CONSTRAINTS = "SELECT conname FROM pg_constraint WHERE conrelid = CAST(:table AS regclass)"
_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make what documents hold now their first editions, named like the documents themselves."""
    _set_aside("chunk", "ix_chunk_knowledge_base_id_number")
    _set_aside("document", "ix_document_knowledge_base_id_name")
    _create_documents()
    _create_chunks()
    _create_unseen_editions()
    op.execute("""
        INSERT INTO document SELECT
            id, knowledge_base_id, name, id, media_type, sha256, size_bytes, chunk_count, created_at, body
        FROM document_before
    """)
    op.execute("""
        INSERT INTO chunk SELECT document_id, ordinal, id, knowledge_base_id, number, tokens, heading_path, text
        FROM chunk_before
    """)
    op.drop_table("chunk_before")
    op.drop_table("document_before")


def downgrade() -> None:
    """Keep what documents hold; chunks of editions that are being written or deleted belong to none and go."""
    op.drop_table("unseen_edition")
    _set_aside("chunk", "ix_chunk_knowledge_base_id_number")
    _set_aside("document", "ix_document_knowledge_base_id_name")
    _create_documents_without_editions()
    _create_chunks_of_documents()
    op.execute("""
        INSERT INTO document SELECT
            id, knowledge_base_id, name, media_type, sha256, size_bytes, chunk_count, created_at, body
        FROM document_before
    """)
    op.execute("""
        INSERT INTO chunk SELECT document_before.id, ordinal, chunk_before.id, chunk_before.knowledge_base_id, number,
            tokens, heading_path, text
        FROM chunk_before JOIN document_before ON document_before.edition_id = chunk_before.edition_id
    """)
    op.drop_table("chunk_before")
    op.drop_table("document_before")


def _set_aside(table: str, index: str) -> None:
    """Free the names that the new table needs; on PostgreSQL constraints have names, too."""
    op.drop_index(index, table)
    op.rename_table(table, f"{table}_before")
    if op.get_bind().dialect.name == "postgresql":
        found = op.get_bind().execute(sa.text(_CONSTRAINTS), {"table": f"{table}_before"})
        for (name,) in found.all():
            op.execute(f"ALTER TABLE {table}_before RENAME CONSTRAINT {name} TO {name}_before")


def _create_documents() -> None:
    op.create_table(
        "document",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("edition_id", sa.Text, nullable=False),
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
        sa.UniqueConstraint("edition_id", name="uq_document_edition_id"),
    )
    op.create_index("ix_document_knowledge_base_id_name", "document", ["knowledge_base_id", "name"], unique=True)


def _create_chunks() -> None:
    op.create_table(
        "chunk",
        sa.Column("edition_id", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("heading_path", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("edition_id", "ordinal", name="pk_chunk"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_chunk_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_chunk_knowledge_base_id_number", "chunk", ["knowledge_base_id", "number"], unique=True)


def _create_unseen_editions() -> None:
    op.create_table(
        "unseen_edition",
        sa.Column("edition_id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("first_number", sa.Integer, nullable=False),
        sa.Column("end_number", sa.Integer, nullable=False),
        sa.Column("counted_to", sa.Text, nullable=False),
        sa.Column("is_leaving", sa.Boolean, nullable=False),
        sa.Column("touched_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("edition_id", name="pk_unseen_edition"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_unseen_edition_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_unseen_edition_knowledge_base_id", "unseen_edition", ["knowledge_base_id"])


def _create_documents_without_editions() -> None:
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


def _create_chunks_of_documents() -> None:
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
