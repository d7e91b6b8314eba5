"""Leases on turns, fencing numbers, and what another process needs to continue a turn."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add columns that the previous release neither reads nor has to write."""
    op.add_column("response", sa.Column("fence", sa.Integer, nullable=False, server_default="0"))
    op.add_column("response", sa.Column("plan", sa.Text))
    op.add_column("response", sa.Column("settled_event", sa.Integer))
    op.add_column("replica", sa.Column("expires_at", _INSTANT))
    op.add_column("replica", sa.Column("trusted_from", _INSTANT))


def downgrade() -> None:
    """Remove the columns; the turns that run go on without a lease."""
    op.drop_column("replica", "trusted_from")
    op.drop_column("replica", "expires_at")
    op.drop_column("response", "settled_event")
    op.drop_column("response", "plan")
    op.drop_column("response", "fence")
