"""Where the dynamic blocks stand in the context message of a running turn."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves empty."""
    op.add_column("response", sa.Column("context_parts", sa.Text()))


def downgrade() -> None:
    """Drop it: a turn that is taken over then gets the blocks as part of the context about its bases."""
    op.drop_column("response", "context_parts")
