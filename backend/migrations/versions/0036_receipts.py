"""Receipts of released answers, in a chain for each tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_HAS_LABEL = sa.text("label IS NOT NULL")


def upgrade() -> None:
    """Create the tables, which are empty: answers of before have no receipt."""
    op.create_table(
        "receipt_chain",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name="pk_receipt_chain"),
    )
    op.create_table(
        "receipt",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "number", name="pk_receipt"),
    )
    op.create_index("ix_receipt_recorded_at", "receipt", ["recorded_at"])
    op.create_index("ix_receipt_cache_key", "receipt", ["cache_key"])
    op.create_table(
        "receipt_document",
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", "tenant", "number", name="pk_receipt_document"),
        sa.ForeignKeyConstraint(
            ["tenant", "number"],
            ["receipt.tenant", "receipt.number"],
            name="fk_receipt_document_tenant_number",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_receipt_document_tenant_number", "receipt_document", ["tenant", "number"])
    op.create_index(
        "ix_log_entry_labelled", "log_entry", ["turn_id"], sqlite_where=_HAS_LABEL, postgresql_where=_HAS_LABEL
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_log_entry_labelled", "log_entry")
    op.drop_table("receipt_document")
    op.drop_table("receipt")
    op.drop_table("receipt_chain")
