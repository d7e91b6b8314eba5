"""What a search engine beside the database is still to be told."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; nothing writes to it before an engine is set."""
    op.create_table(
        "engine_change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("knowledge_base_id", sa.Text(), nullable=False),
        sa.Column("first_number", sa.Integer(), nullable=False),
        sa.Column("end_number", sa.Integer(), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True)),
        sa.Column("shown_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_engine_change"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_engine_change_knowledge_base_id", "engine_change", ["knowledge_base_id"])


def downgrade() -> None:
    """Drop it: a later upgrade tells the engine of all chunks again."""
    op.drop_table("engine_change")
