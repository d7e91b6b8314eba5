"""What the text of a document does not hold."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which the release before leaves as it is."""
    op.add_column("document", sa.Column("notes", sa.Text()))


def downgrade() -> None:
    """Drop it: the documents themselves stay."""
    op.drop_column("document", "notes")
