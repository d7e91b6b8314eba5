"""Agents and their members, and what turns used of them."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; the release before knows no agents, and continues their conversations with their models."""
    op.create_table(
        "agent",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("visibility", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agent"),
    )
    op.create_index("ix_agent_tenant_name", "agent", ["tenant", "name"], unique=True)
    op.create_table(
        "agent_member",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "user_id", name="pk_agent_member"),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], name="fk_agent_member_agent_id", ondelete="CASCADE"),
    )
    op.add_column("conversation", sa.Column("preset_use", sa.Text))
    op.add_column("response", sa.Column("preset_use", sa.Text))


def downgrade() -> None:
    """Drop them; conversations with agents go on with the models, instructions and tools of their newest turns."""
    op.drop_column("response", "preset_use")
    op.drop_column("conversation", "preset_use")
    op.drop_table("agent_member")
    op.drop_table("agent")
