"""What may leave a base for its restricted members: prose under the gate's rules (open) or coded findings (strict)."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which stays empty for the bases that there are, and where the release before creates one."""
    op.add_column("knowledge_base", sa.Column("restricted_grade", sa.Text()))


def downgrade() -> None:
    """Drop it: to the release before every base is open, so take the restricted members from strict ones before."""
    op.drop_column("knowledge_base", "restricted_grade")
