"""The tables of restricted searches.

Rows that belong to a base are deleted with it; audit records stay. The query of a search is not stored.
"""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from backend.foundation.sql.schema import Instant, metadata, required

__all__ = [
    "HAS_CANARIES",
    "IS_UNREPORTED",
    "released_result",
    "released_result_base",
    "restricted_charge",
    "restricted_member",
    "restricted_search",
    "safe_summary_audit",
    "served_chunk",
]

HAS_CANARIES = text("canary_hits > 0")
IS_UNREPORTED = text("ruling IS NULL")
"""Conditions of partial indexes, as literal SQL: such an index serves only queries that repeat its condition."""


def _of_base(**options: bool) -> Column[str]:
    return required("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), **options)


def _of_search(**options: bool) -> Column[str]:
    return required("search_id", Text, ForeignKey("restricted_search.id", ondelete="CASCADE"), **options)


# The row of a user in a base, which is locked while a search is charged. `refused_at` is a JSON list of the newest
# refusals.
restricted_member = Table(
    "restricted_member",
    metadata,
    _of_base(primary_key=True),
    Column("user_id", Text, primary_key=True),
    required("refused_at", Text),
    Column("paused_until", Instant),
)

# `bases`, `versions`, `admission` and `ruling` are JSON.
restricted_search = Table(
    "restricted_search",
    metadata,
    Column("id", Text, primary_key=True),
    required("tenant", Text),
    required("user_id", Text),
    required("conversation_id", Text),
    required("turn_id", Text),
    required("searched_at", Instant, index=True),
    required("bases", Text),
    required("versions", Text),
    required("cache_key", Text),
    required("admission", Text),
    Column("ruling", Text),
    Index("ix_restricted_search_unreported", "searched_at", sqlite_where=IS_UNREPORTED, postgresql_where=IS_UNREPORTED),
)

restricted_charge = Table(
    "restricted_charge",
    metadata,
    _of_search(primary_key=True),
    _of_base(primary_key=True),
    required("user_id", Text),
    required("conversation_id", Text),
    required("charged_at", Instant),
    Index(None, "knowledge_base_id", "user_id", "charged_at"),
)

served_chunk = Table(
    "served_chunk",
    metadata,
    _of_search(primary_key=True),
    Column("chunk_id", Text, primary_key=True),
    _of_base(),
    required("document_id", Text),
    required("ordinal", Integer),
    required("user_id", Text),
    required("conversation_id", Text, index=True),
    required("served_at", Instant),
    Index(None, "knowledge_base_id", "user_id", "served_at"),
)

# `cache_key` is a keyed hash of all that the result depends on, the query included.
released_result = Table(
    "released_result",
    metadata,
    Column("cache_key", Text, primary_key=True),
    required("released", Text),
    required("released_at", Instant, index=True),
)

released_result_base = Table(
    "released_result_base",
    metadata,
    Column("cache_key", Text, ForeignKey("released_result.cache_key", ondelete="CASCADE"), primary_key=True),
    _of_base(primary_key=True),
    Index(None, "knowledge_base_id"),
)

# `bases`, `versions`, `gate_codes` and the budgets are JSON. A forged ticket belongs to no tenant, which is "".
safe_summary_audit = Table(
    "safe_summary_audit",
    metadata,
    Column("id", Text, primary_key=True),
    required("recorded_at", Instant),
    required("tenant", Text),
    required("user_hash", Text),
    required("conversation_id", Text),
    required("turn_id", Text),
    Column("search_id", Text),
    required("bases", Text),
    Column("versions", Text),
    required("decision", Text),
    required("reason", Text),
    required("gate_codes", Text),
    required("rewrites", Integer),
    required("latency_ms", Integer),
    required("chunks_found", Integer),
    required("chunks_sent", Integer),
    required("chunks_distinct", Integer),
    required("canary_hits", Integer),
    required("is_cached", Boolean),
    Column("budget_before", Text),
    Column("budget_after", Text),
    required("preview", Text),
    Index(None, "tenant", "recorded_at", "id"),
    Index("ix_safe_summary_audit_canaries", "recorded_at", sqlite_where=HAS_CANARIES, postgresql_where=HAS_CANARIES),
)
