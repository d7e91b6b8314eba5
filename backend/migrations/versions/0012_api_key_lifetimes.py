"""When an API key ends, when it was last used, where it came from and which key has taken its place."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_COLUMNS = {
    "expires_at": sa.DateTime(timezone=True),
    "last_used_at": sa.DateTime(timezone=True),
    "origin": sa.Text,
    "replaced_by": sa.Text,
}


def upgrade() -> None:
    """Add columns that may be empty: keys that an earlier release stores beside this one have none of them."""
    for name, kind in _COLUMNS.items():
        op.add_column("api_key", sa.Column(name, kind))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("api_key", name)
