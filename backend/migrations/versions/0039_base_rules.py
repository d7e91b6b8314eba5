"""What an owner says of a base for its restricted members: in how many documents a word must stand, and its content."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which stay empty for the bases that there are: prose leaves them as before, however small."""
    op.add_column("knowledge_base", sa.Column("support", sa.Integer()))
    op.add_column("knowledge_base", sa.Column("content", sa.Text()))


def downgrade() -> None:
    """Drop them: to the release before a base of few documents is open, and records are documents."""
    op.drop_column("knowledge_base", "content")
    op.drop_column("knowledge_base", "support")
