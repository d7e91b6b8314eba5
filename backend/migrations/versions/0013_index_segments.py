"""Segments of the search index, beside the index of the release before."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_IS_CHANGED = sa.text("indexed_version IS NULL OR indexed_version <> version")
_IS_UNINDEXED = sa.text("indexed_edition_id IS NULL OR indexed_edition_id <> edition_id")


def upgrade() -> None:
    """Make the tables; running processes index what is there already, a little at a time."""
    op.add_column("document", sa.Column("indexed_edition_id", sa.Text))
    op.add_column("document", sa.Column("index_token_count", sa.BigInteger))
    op.add_column("knowledge_base", sa.Column("indexed_version", sa.Integer))
    op.create_index(
        "ix_knowledge_base_changed", "knowledge_base", ["id"], sqlite_where=_IS_CHANGED, postgresql_where=_IS_CHANGED
    )
    op.create_index(
        "ix_document_unindexed",
        "document",
        ["knowledge_base_id"],
        sqlite_where=_IS_UNINDEXED,
        postgresql_where=_IS_UNINDEXED,
    )
    _make_tables()


def downgrade() -> None:
    """Drop them; documents that were put meanwhile are in no index until the next upgrade."""
    op.drop_table("index_gone")
    op.drop_table("index_page")
    op.drop_table("index_segment")
    op.drop_index("ix_document_unindexed", "document")
    op.drop_column("document", "index_token_count")
    op.drop_column("document", "indexed_edition_id")
    op.drop_index("ix_knowledge_base_changed", "knowledge_base")
    op.drop_column("knowledge_base", "indexed_version")


def _make_tables() -> None:
    op.create_table(
        "index_segment",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("first_number", sa.Integer, nullable=False),
        sa.Column("end_number", sa.Integer, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
        sa.Column("bits", sa.Integer, nullable=False),
        sa.Column("is_visible", sa.Boolean, nullable=False),
        sa.Column("touched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lengths", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_index_segment"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_index_segment_knowledge_base_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_index_segment_knowledge_base_id_first_number", "index_segment", ["knowledge_base_id", "first_number"]
    )
    op.create_table(
        "index_page",
        sa.Column("id", _KEY, nullable=False, autoincrement=False),
        sa.Column("postings", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_index_page"),
    )
    op.create_table(
        "index_gone",
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("first_number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("end_number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", "first_number", name="pk_index_gone"),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"], ["knowledge_base.id"], name="fk_index_gone_knowledge_base_id", ondelete="CASCADE"
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE index_page ALTER COLUMN postings SET STORAGE EXTERNAL")
        op.execute("ALTER TABLE index_segment ALTER COLUMN lengths SET STORAGE EXTERNAL")
