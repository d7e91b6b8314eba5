"""What each model call sent: the calls of turns, their headers, and what the newest one of a conversation sent."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversation", sa.Column("sent_prompt", sa.Text))
    _create_headers()
    _create_calls()


def downgrade() -> None:
    op.drop_table("model_call")
    op.drop_table("prompt_header")
    op.drop_column("conversation", "sent_prompt")


def _create_headers() -> None:
    op.create_table(
        "prompt_header",
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("tools", sa.Text, nullable=False),
        sa.Column("system_prompt", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "digest", name="pk_prompt_header"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_prompt_header_conversation_id", ondelete="CASCADE"
        ),
    )


def _create_calls() -> None:
    op.create_table(
        "model_call",
        sa.Column("response_id", sa.Text, nullable=False),
        sa.Column("call", sa.Integer, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("epoch_reason", sa.Text),
        sa.Column("log_end", sa.Integer, nullable=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("tail", sa.Text),
        sa.Column("reuse", sa.Text, nullable=False),
        sa.Column("shortfall", sa.Text),
        sa.Column("usage", sa.Text),
        sa.PrimaryKeyConstraint("response_id", "call", name="pk_model_call"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_model_call_conversation_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_model_call_conversation_id", "model_call", ["conversation_id"])
