"""Items that were taken out of their conversations, and what turns had run with where clients have seen them end."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, and columns that the release before leaves empty."""
    op.create_table(
        "removed_item",
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("removed_at", sa.Integer, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("response_id", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "sequence", "removed_at", name="pk_removed_item"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_removed_item_conversation_id", ondelete="CASCADE"
        ),
    )
    op.add_column("seen_point", sa.Column("header", sa.Text))
    op.add_column("seen_point", sa.Column("bases", sa.Text))


def downgrade() -> None:
    """Drop them; a fork of a response from which an item was taken out then lacks it."""
    op.drop_column("seen_point", "bases")
    op.drop_column("seen_point", "header")
    op.drop_table("removed_item")
