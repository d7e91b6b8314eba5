"""Groups of people, who is in them, what tokens claimed, and in the audit the group by which somebody had a right."""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; the release before knows no groups, and nobody has a right through one in it."""
    op.create_table(
        "person_group",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_person_group"),
    )
    op.create_index("ix_person_group_tenant_source_name", "person_group", ["tenant", "source", "name"], unique=True)
    op.create_table(
        "group_member",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("named", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="pk_group_member"),
        sa.ForeignKeyConstraint(["group_id"], ["person_group.id"], name="fk_group_member_group_id", ondelete="CASCADE"),
    )
    op.create_index("ix_group_member_tenant_user_id_named", "group_member", ["tenant", "user_id", "named"])
    op.create_table(
        "claimed_groups",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("issued_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "user_id", name="pk_claimed_groups"),
    )
    for table in ("restricted_search", "safe_summary_audit"):
        op.add_column(table, sa.Column("via", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them; who had a right through a group alone has none any more."""
    for table in ("safe_summary_audit", "restricted_search"):
        op.drop_column(table, "via")
    op.drop_table("claimed_groups")
    op.drop_table("group_member")
    op.drop_table("person_group")
