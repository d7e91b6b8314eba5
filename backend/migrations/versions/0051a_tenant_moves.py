"""The moves of tenants between cells."""

import sqlalchemy as sa
from alembic import op

revision = "0051a"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "tenant_move",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cell", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("stopped_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("held", sa.Text(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", name="pk_tenant_move"),
    )


def downgrade() -> None:
    """Take it out."""
    op.drop_table("tenant_move")
