"""A user's usage of a base, read while the user's row in it is locked."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, text, update

from backend.foundation.sql.statements import Statement
from backend.knowledge.sql.tables import knowledge_base
from backend.restricted.domain.restricted import RefusalHistory, SealedSearch
from backend.restricted.domain.restricted_budget import DAY, MONTH, BaseUsage, refused_again
from backend.restricted.sql import tables
from backend.restricted.sql.rows import refusal_parameters, to_refusals
from shared.errors import PermissionDenied

_member = tables.restricted_member
_charge = tables.restricted_charge
_served = tables.served_chunk

_IS_MEMBER = (_member.c.knowledge_base_id == bindparam("where_base_id")) & (
    _member.c.user_id == bindparam("where_user_id")
)

# The base is locked first, with a shared lock: its deletion locks it first, too, and the rows of its members after it.
_HOLD_BASE = Statement(
    select(knowledge_base.c.chunk_count)
    .where(knowledge_base.c.id == bindparam("where_base_id"))
    .with_for_update(read=True, key_share=True)
)
_ADD_MEMBER = Statement(
    text("""
        INSERT INTO restricted_member (knowledge_base_id, user_id, refused_at)
        VALUES (:where_base_id, :where_user_id, '[]') ON CONFLICT (knowledge_base_id, user_id) DO NOTHING
    """)
)
_FIND_MEMBER = select(_member.c.refused_at, _member.c.paused_until).where(_IS_MEMBER)
_HOLD_MEMBER = Statement(_FIND_MEMBER.with_for_update())
_SET_MEMBER = Statement(update(_member).where(_IS_MEMBER))
FIND_REFUSALS = Statement(_FIND_MEMBER)
_COUNT_CHARGES = Statement(
    select(
        func.count().label("month"),
        func.count().filter(_charge.c.charged_at > bindparam("since_day")).label("day"),
        func.count().filter(_charge.c.conversation_id == bindparam("conversation_id")).label("conversation"),
    ).where(
        _charge.c.knowledge_base_id == bindparam("where_base_id"),
        _charge.c.user_id == bindparam("where_user_id"),
        _charge.c.charged_at > bindparam("since_month"),
    )
)
_FIND_SERVED = Statement(
    select(_served.c.chunk_id)
    .where(
        _served.c.knowledge_base_id == bindparam("where_base_id"),
        _served.c.user_id == bindparam("where_user_id"),
        _served.c.served_at > bindparam("since_day"),
    )
    .distinct()
)


def hold_usage(connection: Connection, search: SealedSearch, base_id: str) -> BaseUsage:
    """Lock the user's row in a base against other charges; return what they have used so far.

    Raises:
        PermissionDenied: there is no such base any more.
    """
    key = {"where_base_id": base_id, "where_user_id": search.user_id}
    chunk_count, refusals = _hold(connection, base_id, search.user_id)
    since_day = {"since_day": search.searched_at - DAY}
    since_month = {"since_month": search.searched_at - MONTH, "conversation_id": search.conversation_id}
    (counts,) = _COUNT_CHARGES.rows(connection, {**key, **since_day, **since_month})
    served = _FIND_SERVED.rows(connection, {**key, **since_day})
    return BaseUsage(
        knowledge_base_id=base_id,
        chunk_count=chunk_count,
        refusals=refusals,
        served_today=frozenset(row["chunk_id"] for row in served),
        **counts,
    )


def count_refusal(connection: Connection, base_id: str, user_id: str, now: datetime) -> None:
    """Count a refusal in a base; a deleted base is skipped."""
    try:
        _, refusals = _hold(connection, base_id, user_id)
    except PermissionDenied:
        return
    key = {"where_base_id": base_id, "where_user_id": user_id}
    _SET_MEMBER.change(connection, {**key, **refusal_parameters(refused_again(refusals, now))})


def _hold(connection: Connection, base_id: str, user_id: str) -> tuple[int, RefusalHistory]:
    key = {"where_base_id": base_id, "where_user_id": user_id}
    base = _HOLD_BASE.first(connection, {"where_base_id": base_id})
    if base is None:
        raise PermissionDenied("The user is no longer a member of a knowledge base.", param="knowledge_base_ids")
    _ADD_MEMBER.change(connection, key)
    (member,) = _HOLD_MEMBER.rows(connection, key)
    return base["chunk_count"], to_refusals(member)
