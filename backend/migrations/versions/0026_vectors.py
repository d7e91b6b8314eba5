"""Vectors of chunks, and which bases may be embedded; the table of vectors itself is made beside (ADR 0034)."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025a"
branch_labels = None
depends_on = None

_HAS_WAITING = sa.text("waiting_chunks > 0")


def upgrade() -> None:
    """Add what the release before neither reads nor writes; what it stores meanwhile is found later."""
    op.add_column("knowledge_base", sa.Column("embed", sa.Boolean, nullable=False, server_default=sa.true()))
    op.create_table(
        "vector_space",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("removals", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vector_space"),
        sa.UniqueConstraint(
            "knowledge_base_id", "model", "dimension", name="uq_vector_space_knowledge_base_id_model_dimension"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "edition_vectors",
        sa.Column("space_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("edition_id", sa.Text, nullable=False),
        sa.Column("first_number", sa.Integer, nullable=False),
        sa.Column("end_number", sa.Integer, nullable=False),
        sa.Column("waiting_chunks", sa.Integer, nullable=False),
        sa.Column("embedded_chunks", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("space_id", "edition_id", name="pk_edition_vectors"),
    )
    op.create_index("ix_edition_vectors_edition_id", "edition_vectors", ["edition_id"])
    op.create_index(
        "ix_edition_vectors_waiting",
        "edition_vectors",
        ["space_id", "first_number"],
        sqlite_where=_HAS_WAITING,
        postgresql_where=_HAS_WAITING,
    )
    op.create_table(
        "chunk_claim",
        sa.Column("space_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("space_id", "number", name="pk_chunk_claim"),
    )
    op.create_index("ix_chunk_claim_digest", "chunk_claim", ["digest"])


def downgrade() -> None:
    """Drop them with all vectors, which can be made anew; the extension stays, for others may use it."""
    op.execute("DROP TABLE IF EXISTS search_vector")
    op.drop_table("chunk_claim")
    op.drop_table("edition_vectors")
    op.drop_table("vector_space")
    op.drop_column("knowledge_base", "embed")
