"""The tables of restricted searches.

Rows that belong to a base are deleted with it; audit records stay. The query of a search is not stored.
"""

from sqlalchemy import Boolean, Column, ForeignKey, ForeignKeyConstraint, Index, Integer, Table, Text, text

from backend.foundation.sql.schema import Instant, metadata, require

__all__ = [
    "HAS_CANARIES",
    "IS_UNREPORTED",
    "receipt",
    "receipt_chain",
    "receipt_document",
    "released_result",
    "released_result_base",
    "restricted_charge",
    "restricted_member",
    "restricted_search",
    "safe_summary_audit",
    "served_chunk",
    "told_fact",
]

HAS_CANARIES = text("canary_hits > 0")
IS_UNREPORTED = text("ruling IS NULL")
"""Conditions of partial indexes, as literal SQL: such an index serves only queries that repeat its condition."""


def _of_base(**options: bool) -> Column[str]:
    return require("knowledge_base_id", Text, ForeignKey("knowledge_base.id", ondelete="CASCADE"), **options)


def _of_search(**options: bool) -> Column[str]:
    return require("search_id", Text, ForeignKey("restricted_search.id", ondelete="CASCADE"), **options)


# The row of a user in a base, which is locked while a search is charged. `refused_at` is a JSON list of the newest
# refusals.
restricted_member = Table(
    "restricted_member",
    metadata,
    _of_base(primary_key=True),
    Column("user_id", Text, primary_key=True),
    require("refused_at", Text),
    Column("paused_until", Instant),
)

# `bases`, `versions`, `admission`, `ruling` and `via` are JSON.
restricted_search = Table(
    "restricted_search",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("conversation_id", Text),
    require("turn_id", Text),
    require("searched_at", Instant, index=True),
    require("bases", Text),
    require("versions", Text),
    require("cache_key", Text),
    require("admission", Text),
    Column("ruling", Text),
    Column("via", Text),
    Index("ix_restricted_search_unreported", "searched_at", sqlite_where=IS_UNREPORTED, postgresql_where=IS_UNREPORTED),
)

restricted_charge = Table(
    "restricted_charge",
    metadata,
    _of_search(primary_key=True),
    _of_base(primary_key=True),
    require("user_id", Text),
    require("conversation_id", Text),
    require("charged_at", Instant),
    Index(None, "knowledge_base_id", "user_id", "charged_at"),
)

served_chunk = Table(
    "served_chunk",
    metadata,
    _of_search(primary_key=True),
    Column("chunk_id", Text, primary_key=True),
    _of_base(),
    require("document_id", Text),
    require("ordinal", Integer),
    require("user_id", Text),
    require("conversation_id", Text, index=True),
    require("served_at", Instant),
    Index(None, "knowledge_base_id", "user_id", "served_at"),
)

# A sentence of a document that an answer of a search has told the user, as a keyed digest.
told_fact = Table(
    "told_fact",
    metadata,
    _of_search(primary_key=True),
    Column("document_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    require("user_id", Text),
    require("told_at", Instant),
    Index(None, "document_id", "user_id", "told_at"),
)

# `cache_key` is a keyed hash of all that the result depends on, the query included.
released_result = Table(
    "released_result",
    metadata,
    Column("cache_key", Text, primary_key=True),
    require("released", Text),
    require("released_at", Instant, index=True),
)

released_result_base = Table(
    "released_result_base",
    metadata,
    Column("cache_key", Text, ForeignKey("released_result.cache_key", ondelete="CASCADE"), primary_key=True),
    _of_base(primary_key=True),
    Index(None, "knowledge_base_id"),
)

# `bases`, `versions`, `via`, `gate_codes` and the budgets are JSON. A forged ticket belongs to no tenant, which is "".
safe_summary_audit = Table(
    "safe_summary_audit",
    metadata,
    Column("id", Text, primary_key=True),
    require("recorded_at", Instant),
    require("tenant", Text),
    require("user_hash", Text),
    require("conversation_id", Text),
    require("turn_id", Text),
    Column("search_id", Text),
    require("bases", Text),
    Column("versions", Text),
    require("decision", Text),
    require("reason", Text),
    require("gate_codes", Text),
    require("rewrites", Integer),
    require("latency_ms", Integer),
    require("chunks_found", Integer),
    require("chunks_sent", Integer),
    require("chunks_distinct", Integer),
    require("canary_hits", Integer),
    require("is_cached", Boolean),
    Column("budget_before", Text),
    Column("budget_after", Text),
    require("preview", Text),
    Column("facts", Integer),
    Column("via", Text),
    Index(None, "tenant", "recorded_at", "id"),
    Index("ix_safe_summary_audit_canaries", "recorded_at", sqlite_where=HAS_CANARIES, postgresql_where=HAS_CANARIES),
)

# The end of each tenant's chain of receipts, which is locked while a receipt is added.
receipt_chain = Table(
    "receipt_chain",
    metadata,
    Column("tenant", Text, primary_key=True),
    require("number", Integer),
    require("digest", Text),
)

# `body` is the JSON that was signed. `cache_key` is that of the result that was shown.
receipt = Table(
    "receipt",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    require("recorded_at", Instant, index=True),
    require("turn_id", Text),
    require("cache_key", Text, index=True),
    require("body", Text),
    require("signature", Text),
)

# The documents on which answers rest; a row stays when its document is deleted.
receipt_document = Table(
    "receipt_document",
    metadata,
    Column("document_id", Text, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    require("sha256", Text),
    ForeignKeyConstraint(("tenant", "number"), ("receipt.tenant", "receipt.number"), ondelete="CASCADE"),
    Index(None, "tenant", "number"),
)
