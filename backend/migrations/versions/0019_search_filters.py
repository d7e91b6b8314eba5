"""The filters of a conversation's searches, apart from its other settings."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that the release before leaves as it is."""
    op.add_column("conversation", sa.Column("search_filters", sa.Text))


def downgrade() -> None:
    """Drop it; conversations go on without filters."""
    op.drop_column("conversation", "search_filters")
