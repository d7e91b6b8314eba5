"""By what the conversations of a user, and those that are shared with them, are listed."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_IS_SHARED = sa.text("members IS NOT NULL")


def upgrade() -> None:
    """Make indexes, which the release before keeps without knowing of them."""
    op.create_index("ix_conversation_tenant_user_id_created_at", "conversation", ["tenant", "user_id", "created_at"])
    op.create_index(
        "ix_conversation_shared", "conversation", ["tenant"], sqlite_where=_IS_SHARED, postgresql_where=_IS_SHARED
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_conversation_shared", "conversation")
    op.drop_index("ix_conversation_tenant_user_id_created_at", "conversation")
