"""What of the answer of a model call could not be kept."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves empty."""
    op.add_column("model_call", sa.Column("left_out", sa.Text()))


def downgrade() -> None:
    """Drop it: what it says is in the metadata of ended responses."""
    op.drop_column("model_call", "left_out")
