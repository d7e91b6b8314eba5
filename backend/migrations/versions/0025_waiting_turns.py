"""Turns that wait for their conversation, and the members of conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the release before neither reads nor writes: it begins its turns before those that wait."""
    op.add_column("conversation", sa.Column("members", sa.Text))
    op.create_table(
        "waiting_turn",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("if_running", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("background", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("input_items", sa.Text, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("entered_id", sa.Text),
        sa.Column("entered_at", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_waiting_turn"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_waiting_turn_conversation_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["entered_id"], ["response.id"], name="fk_waiting_turn_entered_id", ondelete="CASCADE"),
    )
    op.create_index("ix_waiting_turn_conversation_id_place", "waiting_turn", ["conversation_id", "place"], unique=True)
    op.create_index("ix_waiting_turn_entered_id", "waiting_turn", ["entered_id"])


def downgrade() -> None:
    """Drop them: what waits is lost, and only who created a conversation can use it."""
    op.drop_table("waiting_turn")
    op.drop_column("conversation", "members")
