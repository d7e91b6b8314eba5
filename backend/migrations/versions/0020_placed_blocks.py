"""Where the words of agents and the files of messages stand in prompts."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns that the release before leaves empty, and a table of texts that stand in prompts, but in no log."""
    op.add_column("log_entry", sa.Column("reset_additions", sa.Text))
    op.add_column("log_entry", sa.Column("placed", sa.Text))
    op.add_column("model_call", sa.Column("placed", sa.Text))
    op.create_table(
        "placed_text",
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "digest", name="pk_placed_text"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_placed_text_conversation_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Drop them; statements of agents' blocks then count as notices, and prompts are shown without what moved."""
    op.drop_table("placed_text")
    op.drop_column("model_call", "placed")
    op.drop_column("log_entry", "placed")
    op.drop_column("log_entry", "reset_additions")
