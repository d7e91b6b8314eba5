"""Conversations with their log and items, responses, replicas and API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_IS_RUNNING = sa.text("status IN ('queued', 'in_progress')")


def upgrade() -> None:
    _create_conversations()
    _create_log()
    _create_items()
    _create_responses()
    _create_keys()


def downgrade() -> None:
    for table in ("api_key", "replica", "response", "item", "log_entry", "conversation"):
        op.drop_table(table)


def _create_conversations() -> None:
    op.create_table(
        "conversation",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("log_length", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("turn_defaults", sa.Text, nullable=False),
        sa.Column("cache_key", sa.Text, nullable=False),
        sa.Column("running_response_id", sa.Text),
        sa.Column("latest_response_id", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_conversation"),
    )


def _create_log() -> None:
    op.create_table(
        "log_entry",
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("role", sa.Text),
        sa.Column("label", sa.Text),
        sa.Column("content", sa.Text),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "position", name="pk_log_entry"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_log_entry_conversation_id", ondelete="CASCADE"
        ),
    )


def _create_items() -> None:
    op.create_table(
        "item",
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("response_id", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "sequence", name="pk_item"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_item_conversation_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_item_conversation_id_id", "item", ["conversation_id", "id"], unique=True)


def _create_responses() -> None:
    op.create_table(
        "response",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("background", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("input_items", sa.Text, nullable=False),
        sa.Column("partial_output", sa.Text),
        sa.Column("log_end", sa.Integer),
        sa.Column("items_end", sa.Integer),
        sa.Column("last_event", sa.Integer, nullable=False),
        sa.Column("replica", sa.Text, nullable=False),
        sa.Column("is_deleted", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_response"),
    )
    op.create_index(
        "ix_response_running", "response", ["replica"], sqlite_where=_IS_RUNNING, postgresql_where=_IS_RUNNING
    )


def _create_keys() -> None:
    op.create_table(
        "replica",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("seen_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_replica"),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("key_hash", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("key_hash", name="uq_api_key_key_hash"),
    )
