"""By which tokens a segment was written, so that segments of earlier ones are found and written anew."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before does not name, and its index."""
    op.add_column("index_segment", sa.Column("tokens_version", sa.Integer(), nullable=False, server_default="1"))
    op.create_index("ix_index_segment_tokens_version", "index_segment", ["tokens_version"])


def downgrade() -> None:
    """Drop both: further tokens in a segment do no harm."""
    op.drop_index("ix_index_segment_tokens_version", "index_segment")
    op.drop_column("index_segment", "tokens_version")
