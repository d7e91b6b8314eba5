"""Facts that answers of restricted searches have told, and their number in the audit."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, which is empty: what was told before was not weighed."""
    op.create_table(
        "told_fact",
        sa.Column("search_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("search_id", "document_id", "digest", name="pk_told_fact"),
        sa.ForeignKeyConstraint(
            ["search_id"], ["restricted_search.id"], name="fk_told_fact_search_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_told_fact_document_id_user_id_told_at", "told_fact", ["document_id", "user_id", "told_at"])
    op.add_column("safe_summary_audit", sa.Column("facts", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Take them out."""
    op.drop_column("safe_summary_audit", "facts")
    op.drop_table("told_fact")
