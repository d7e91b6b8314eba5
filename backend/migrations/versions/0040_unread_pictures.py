"""How many pages and pictures of a document have a text that nobody has read."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves at 0, and mark the documents whose notes tell of such pages."""
    op.add_column("document", sa.Column("unread_pictures", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE document SET unread_pictures = 1 WHERE notes LIKE '%has no text.%'")


def downgrade() -> None:
    """Drop it: the documents themselves stay."""
    op.drop_column("document", "unread_pictures")
