"""Released results, stored for equal searches; deleting any base of a result deletes the result."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, text

from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Statement
from backend.restricted.sql import tables
from shared.models.safe_summary import ReleasedSummary

_result = tables.released_result
_of_base = tables.released_result_base

# Equal searches may be released at the same moment: the second waits for the first and then replaces its result.
_KEEP = Statement(
    text("""
        INSERT INTO released_result (cache_key, released, released_at) VALUES (:cache_key, :released, :released_at)
        ON CONFLICT (cache_key) DO UPDATE SET released = excluded.released, released_at = excluded.released_at
    """).bindparams(bindparam("released_at", type_=Instant))
)
_ADD_BASE = Statement(
    text("""
        INSERT INTO released_result_base (cache_key, knowledge_base_id) VALUES (:cache_key, :knowledge_base_id)
        ON CONFLICT (cache_key, knowledge_base_id) DO NOTHING
    """)
)


def keep_released(
    connection: Connection, cache_key: str, base_ids: Sequence[str], released: ReleasedSummary, now: datetime
) -> None:
    """Store a result; it replaces the earlier result of the same key."""
    kept = {"cache_key": cache_key, "released": released.model_dump_json(), "released_at": now}
    _KEEP.change(connection, kept)
    _ADD_BASE.change(connection, *({"cache_key": cache_key, "knowledge_base_id": base_id} for base_id in base_ids))


def remove_results(connection: Connection, before: datetime, most: int) -> int:
    """Delete up to `most` results from before that instant; return how many were deleted."""
    old = select(_result.c.cache_key).where(_result.c.released_at <= before).limit(most)
    return connection.execute(delete(_result).where(_result.c.cache_key.in_(old))).rowcount


def forget_results_of(connection: Connection, base_id: str) -> None:
    """Delete the results that were made from a base, alone or together with other bases."""
    of_base = select(_of_base.c.cache_key).where(_of_base.c.knowledge_base_id == base_id)
    connection.execute(delete(_result).where(_result.c.cache_key.in_(of_base)))
