"""Whether restricted members may be given summaries of a base's text in another language."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "knowledge_base", sa.Column("restricted_translation", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    op.drop_column("knowledge_base", "restricted_translation")
