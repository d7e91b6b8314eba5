"""By which reader the text of a document was made, and in which encoding the client said it was."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which the release before leaves empty."""
    op.add_column("document", sa.Column("reader_version", sa.Integer()))
    op.add_column("document", sa.Column("charset", sa.Text()))


def downgrade() -> None:
    """Drop them: the documents themselves stay."""
    op.drop_column("document", "charset")
    op.drop_column("document", "reader_version")
