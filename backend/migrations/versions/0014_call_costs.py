"""What a model call cost."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that may be empty: an earlier release beside this one stores calls without a cost."""
    op.add_column("model_call", sa.Column("cost", sa.Text))


def downgrade() -> None:
    op.drop_column("model_call", "cost")
