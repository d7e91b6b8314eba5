"""A directory over SCIM: its users, versions of its groups, and the places of users in them."""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, which are empty until a directory writes."""
    op.create_table(
        "scim_user",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scim_user"),
    )
    op.create_index("ix_scim_user_tenant_key", "scim_user", ["tenant", "key"], unique=True)
    op.create_index("ix_scim_user_tenant_external_id", "scim_user", ["tenant", "external_id"])
    op.create_table(
        "scim_group",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("group_id", name="pk_scim_group"),
        sa.ForeignKeyConstraint(["group_id"], ["person_group.id"], name="fk_scim_group_group_id", ondelete="CASCADE"),
    )
    op.create_table(
        "scim_member",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("member_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "member_id", name="pk_scim_member"),
        sa.ForeignKeyConstraint(["group_id"], ["person_group.id"], name="fk_scim_member_group_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["member_id"], ["scim_user.id"], name="fk_scim_member_member_id", ondelete="CASCADE"),
    )
    op.create_index("ix_scim_member_member_id", "scim_member", ["member_id"])


def downgrade() -> None:
    """Drop the tables; the groups stay as the directory has left them, until an administrator deletes them."""
    for table in ("scim_member", "scim_group", "scim_user"):
        op.drop_table(table)
