"""How full the window of each model call was, and what the calls that made a summary were made of."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns that the release before leaves empty."""
    op.add_column("model_call", sa.Column("gauge", sa.Text))
    op.add_column("model_call", sa.Column("summary_of", sa.Text))


def downgrade() -> None:
    """Drop them; prompts of summaries are then shown with the log at their time."""
    op.drop_column("model_call", "summary_of")
    op.drop_column("model_call", "gauge")
