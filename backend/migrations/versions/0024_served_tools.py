"""The tools of tool servers that a conversation has fixed, apart from its other settings."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that the release before leaves as it is."""
    op.add_column("conversation", sa.Column("served_tools", sa.Text))


def downgrade() -> None:
    """Drop it; conversations go on without tools of tool servers."""
    op.drop_column("conversation", "served_tools")
