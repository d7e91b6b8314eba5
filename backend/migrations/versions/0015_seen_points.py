"""What clients had seen of their conversations, by which one that resends its history is recognised."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; responses of an earlier release beside this one have no row, and are not recognised."""
    op.create_table(
        "seen_point",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("response_id", sa.Text, nullable=False),
        sa.Column("log_end", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_seen_point"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_seen_point_conversation_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["response_id"], ["response.id"], name="fk_seen_point_response_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_seen_point_conversation_id", "seen_point", ["conversation_id"])
    op.create_index("ix_seen_point_response_id", "seen_point", ["response_id"], unique=True)
    op.create_index("ix_seen_point_digest_id", "seen_point", ["digest", "id"])
    op.create_index("ix_item_id", "item", ["id"])


def downgrade() -> None:
    """Drop it; clients that resend their history begin new conversations."""
    op.drop_index("ix_item_id", "item")
    op.drop_table("seen_point")
