"""Where in its file a chunk stands."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves empty."""
    op.add_column("chunk", sa.Column("place", sa.Text()))


def downgrade() -> None:
    """Drop it: the chunks themselves stay."""
    op.drop_column("chunk", "place")
