"""What an epoch begins with, and what its context has said, on entries of the log."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("log_entry", sa.Column("reset", sa.Text))
    op.add_column("log_entry", sa.Column("context", sa.Text))


def downgrade() -> None:
    op.drop_column("log_entry", "context")
    op.drop_column("log_entry", "reset")
