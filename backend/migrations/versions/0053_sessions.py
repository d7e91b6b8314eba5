"""Keys that browsers keep in a cookie, and whose session at the identity provider they are."""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0051a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which are empty for all keys that are there."""
    for name in ("session_subject", "session_id"):
        op.add_column("api_key", sa.Column(name, sa.Text(), nullable=True))
        op.create_index(f"ix_api_key_{name}", "api_key", [name])


def downgrade() -> None:
    """Take the columns out; sessions stay, as keys that nobody presents and that expire within hours."""
    for name in ("session_subject", "session_id"):
        op.drop_index(f"ix_api_key_{name}", "api_key")
        op.drop_column("api_key", name)
