"""Finding the restricted searches whose outcome never came."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_IS_UNREPORTED = sa.text("ruling IS NULL")


def upgrade() -> None:
    op.create_index(
        "ix_restricted_search_unreported",
        "restricted_search",
        ["searched_at"],
        sqlite_where=_IS_UNREPORTED,
        postgresql_where=_IS_UNREPORTED,
    )


def downgrade() -> None:
    op.drop_index("ix_restricted_search_unreported", "restricted_search")
