"""Limits of an API key's own: turns and tokens a minute, and turns at a time."""

import sqlalchemy as sa
from alembic import op

revision = "0025a"
down_revision = "0025"
branch_labels = None
depends_on = None

_COLUMNS = ("turns_per_minute", "tokens_per_minute", "turns_at_once")


def upgrade() -> None:
    """Add columns that may be empty: the release before issues keys without limits of their own."""
    for name in _COLUMNS:
        op.add_column("api_key", sa.Column(name, sa.Integer))


def downgrade() -> None:
    """Drop them: keys then have no limits."""
    for name in reversed(_COLUMNS):
        op.drop_column("api_key", name)
