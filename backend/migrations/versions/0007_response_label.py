"""From which knowledge a response may hold words."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("response", sa.Column("label", sa.Text))


def downgrade() -> None:
    op.drop_column("response", "label")
