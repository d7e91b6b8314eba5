"""Why the provider's cache was missed by a model call, and what the provider says of it."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves empty."""
    op.add_column("model_call", sa.Column("miss", sa.Text()))


def downgrade() -> None:
    """Drop it: the calls themselves stay."""
    op.drop_column("model_call", "miss")
