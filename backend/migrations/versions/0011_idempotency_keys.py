"""Keys by which a request that is sent again is known, with what it has created."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotency_key",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_idempotency_key"),
    )
    op.create_index("ix_idempotency_key_claimed_at", "idempotency_key", ["claimed_at"])


def downgrade() -> None:
    op.drop_table("idempotency_key")
