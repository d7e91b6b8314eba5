"""Restricted searches: budgets, what was sent, kept results, the audit."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables; nothing is in them before the first restricted search."""
    _create_members()
    _create_searches()
    _create_charges()
    _create_served_chunks()
    _create_released_results()
    _create_audit()


def downgrade() -> None:
    for table in (
        "safe_summary_audit",
        "released_result_base",
        "released_result",
        "served_chunk",
        "restricted_charge",
        "restricted_search",
        "restricted_member",
    ):
        op.drop_table(table)


def _create_members() -> None:
    op.create_table(
        "restricted_member",
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("refused_at", sa.Text, nullable=False),
        sa.Column("paused_until", _INSTANT),
        sa.PrimaryKeyConstraint("knowledge_base_id", "user_id", name="pk_restricted_member"),
        _of_base("restricted_member"),
    )


def _create_searches() -> None:
    op.create_table(
        "restricted_search",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("searched_at", _INSTANT, nullable=False),
        sa.Column("bases", sa.Text, nullable=False),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("cache_key", sa.Text, nullable=False),
        sa.Column("admission", sa.Text, nullable=False),
        sa.Column("ruling", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_restricted_search"),
    )
    op.create_index("ix_restricted_search_searched_at", "restricted_search", ["searched_at"])


def _create_charges() -> None:
    op.create_table(
        "restricted_charge",
        sa.Column("search_id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("charged_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("search_id", "knowledge_base_id", name="pk_restricted_charge"),
        _of_search("restricted_charge"),
        _of_base("restricted_charge"),
    )
    op.create_index(
        "ix_restricted_charge_knowledge_base_id_user_id_charged_at",
        "restricted_charge",
        ["knowledge_base_id", "user_id", "charged_at"],
    )


def _create_served_chunks() -> None:
    op.create_table(
        "served_chunk",
        sa.Column("search_id", sa.Text, nullable=False),
        sa.Column("chunk_id", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("served_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("search_id", "chunk_id", name="pk_served_chunk"),
        _of_search("served_chunk"),
        _of_base("served_chunk"),
    )
    op.create_index("ix_served_chunk_conversation_id", "served_chunk", ["conversation_id"])
    op.create_index(
        "ix_served_chunk_knowledge_base_id_user_id_served_at",
        "served_chunk",
        ["knowledge_base_id", "user_id", "served_at"],
    )


def _create_released_results() -> None:
    op.create_table(
        "released_result",
        sa.Column("cache_key", sa.Text, nullable=False),
        sa.Column("released", sa.Text, nullable=False),
        sa.Column("released_at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("cache_key", name="pk_released_result"),
    )
    op.create_index("ix_released_result_released_at", "released_result", ["released_at"])
    op.create_table(
        "released_result_base",
        sa.Column("cache_key", sa.Text, nullable=False),
        sa.Column("knowledge_base_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("cache_key", "knowledge_base_id", name="pk_released_result_base"),
        sa.ForeignKeyConstraint(
            ["cache_key"], ["released_result.cache_key"], name="fk_released_result_base_cache_key", ondelete="CASCADE"
        ),
        _of_base("released_result_base"),
    )
    op.create_index("ix_released_result_base_knowledge_base_id", "released_result_base", ["knowledge_base_id"])


def _create_audit() -> None:
    op.create_table(
        "safe_summary_audit",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("user_hash", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("turn_id", sa.Text, nullable=False),
        sa.Column("search_id", sa.Text),
        sa.Column("bases", sa.Text, nullable=False),
        sa.Column("versions", sa.Text),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("gate_codes", sa.Text, nullable=False),
        sa.Column("rewrites", sa.Integer, nullable=False),
        sa.Column("latency_ms", sa.Integer, nullable=False),
        sa.Column("chunks_found", sa.Integer, nullable=False),
        sa.Column("chunks_sent", sa.Integer, nullable=False),
        sa.Column("chunks_distinct", sa.Integer, nullable=False),
        sa.Column("canary_hits", sa.Integer, nullable=False),
        sa.Column("is_cached", sa.Boolean, nullable=False),
        sa.Column("budget_before", sa.Text),
        sa.Column("budget_after", sa.Text),
        sa.Column("preview", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_safe_summary_audit"),
    )
    op.create_index(
        "ix_safe_summary_audit_tenant_recorded_at_id", "safe_summary_audit", ["tenant", "recorded_at", "id"]
    )
    has_canaries = sa.text("canary_hits > 0")
    op.create_index(
        "ix_safe_summary_audit_canaries",
        "safe_summary_audit",
        ["recorded_at"],
        sqlite_where=has_canaries,
        postgresql_where=has_canaries,
    )


def _of_base(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_knowledge_base_id"
    return sa.ForeignKeyConstraint(["knowledge_base_id"], ["knowledge_base.id"], name=name, ondelete="CASCADE")


def _of_search(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_search_id"
    return sa.ForeignKeyConstraint(["search_id"], ["restricted_search.id"], name=name, ondelete="CASCADE")
