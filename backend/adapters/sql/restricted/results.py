"""Released results, kept for equal searches; they go with any base that they were made of."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from backend.adapters.sql.restricted import tables
from shared.models.safe_summary import ReleasedSummary

_result = tables.released_result
_of_base = tables.released_result_base


def keep_released(
    connection: Connection, cache_key: str, base_ids: Sequence[str], released: ReleasedSummary, now: datetime
) -> None:
    """Keep a result in the place of the one before."""
    connection.execute(delete(_result).where(_result.c.cache_key == cache_key))
    kept = {"cache_key": cache_key, "released": released.model_dump_json(), "released_at": now}
    connection.execute(insert(_result), kept)
    connection.execute(
        insert(_of_base), [{"cache_key": cache_key, "knowledge_base_id": base_id} for base_id in base_ids]
    )


def remove_results(connection: Connection, before: datetime, most: int) -> int:
    """Forget up to `most` results from before that instant; return how many."""
    old = select(_result.c.cache_key).where(_result.c.released_at <= before).limit(most)
    return connection.execute(delete(_result).where(_result.c.cache_key.in_(old))).rowcount


def forget_results_of(connection: Connection, base_id: str) -> None:
    """Forget the results that were made of a base, be it with others."""
    of_base = select(_of_base.c.cache_key).where(_of_base.c.knowledge_base_id == base_id)
    connection.execute(delete(_result).where(_result.c.cache_key.in_(of_base)))
