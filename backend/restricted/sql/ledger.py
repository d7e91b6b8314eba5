"""The ledger of restricted searches in SQL."""

from collections.abc import Sequence
from datetime import datetime

import orjson
from sqlalchemy import Connection, Integer, bindparam, delete, func, insert, select, text, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Statement
from backend.knowledge.sql.tables import knowledge_base
from backend.restricted.domain.restricted import (
    Candidate,
    ChargedSearch,
    RefusalHistory,
    Ruling,
    SealedSearch,
    SearchAdmission,
    Settlement,
)
from backend.restricted.domain.restricted_budget import DAY, MONTH, BaseUsage, RestrictedLimits, add_refusal, admit
from backend.restricted.domain.told_facts import ChunkShown
from backend.restricted.sql import rows, tables
from backend.restricted.sql.facts import add_facts, read_shown
from backend.restricted.sql.receipts import add_receipt
from backend.restricted.sql.rows import refusal_parameters, to_refusals
from shared.errors import PermissionDenied
from shared.models.safe_summary import Failure, ReleasedSummary
from shared.receipts import ReceiptSigner

REMOVED_PER_STEP = 100
"""Searches, and results, that one transaction deletes, each with the rows that refer to it."""

_search = tables.restricted_search
_audit = tables.safe_summary_audit

_IS_SEARCH = _search.c.id == bindparam("where_id")
_ADD_SEARCH = Statement(insert(_search))
_ADD_CHARGE = Statement(insert(tables.restricted_charge))
_ADD_SERVED = Statement(insert(tables.served_chunk))
_ADD_RECORD = Statement(insert(_audit))
_FIND_SEARCH = Statement(select(_search).where(_IS_SEARCH))
_FIND_UNREPORTED = Statement(
    select(_search.c.id)
    .where(tables.IS_UNREPORTED, _search.c.searched_at <= bindparam("before"))
    .order_by(_search.c.searched_at)
    .limit(bindparam("most", type_=Integer))
)
_FIND_EQUAL = Statement(
    select(_search).where(
        tables.IS_UNREPORTED,
        _search.c.turn_id == bindparam("where_turn_id"),
        _search.c.cache_key == bindparam("where_cache_key"),
    )
)
_HOLD_SEARCH = Statement(select(_search).where(_IS_SEARCH).with_for_update())
_SET_RULING = Statement(update(_search).where(_IS_SEARCH))
_FIND_RELEASED = Statement(
    select(tables.released_result.c.released).where(
        tables.released_result.c.cache_key == bindparam("where_cache_key"),
    )
)
_COUNT_UNASSIGNED = Statement(
    select(func.count().label("records")).where(_audit.c.tenant == "", _audit.c.recorded_at > bindparam("since"))
)
_CANARY_REPLIES = Statement(
    select(_audit.c.versions).where(tables.HAS_CANARIES, _audit.c.recorded_at > bindparam("since"))
)


class SqlRestrictedLedger:
    """The `RestrictedLedger` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def charge(
        self, search: SealedSearch, candidates: Sequence[Candidate], limits: RestrictedLimits
    ) -> ChargedSearch:
        """Charge a search to each of its bases and store it once for its turn, or refuse it whole and store nothing."""

        def work(connection: Connection) -> ChargedSearch:
            # Every transaction locks bases in the order of their ids, so that none deadlock.
            usages = [hold_usage(connection, search, base_id) for base_id in sorted(search.base_ids)]
            # Equal searches have the same bases, so the locks keep two of them from missing each other here.
            equal = _FIND_EQUAL.first(
                connection, {"where_turn_id": search.turn_id, "where_cache_key": search.cache_key}
            )
            if equal is not None:
                return rows.to_search(equal)
            admission = admit(usages, candidates, limits, search.searched_at)
            if admission.refusal is None:
                _write_charge(connection, search, candidates, admission)
            return ChargedSearch(search=search, admission=admission, ruling=None)

        return await self._database.write(work)

    async def find_search(self, search_id: str) -> ChargedSearch | None:
        """Return a search that was charged, or None."""
        row = await self._database.find(_FIND_SEARCH, {"where_id": search_id})
        return rows.to_search(row) if row is not None else None

    async def is_paused(self, user_id: str, base_ids: Sequence[str], now: datetime) -> bool:
        """Return whether the user is paused in one of the bases."""
        for base_id in base_ids:
            row = await self._database.find(FIND_REFUSALS, {"where_base_id": base_id, "where_user_id": user_id})
            if row is not None and rows.to_refusals(row).is_paused(now):
                return True
        return False

    async def find_released(self, cache_key: str) -> ReleasedSummary | None:
        """Return the result released for an equal search, or None."""
        row = await self._database.find(_FIND_RELEASED, {"where_cache_key": cache_key})
        return ReleasedSummary.model_validate_json(row["released"]) if row is not None else None

    async def settle(self, settlement: Settlement, signer: ReceiptSigner) -> Ruling | None:
        """Write an outcome in one transaction, or return the ruling that the search has already."""
        record = settlement.record

        def work(connection: Connection) -> Ruling | None:
            earlier = _rule(connection, record.search_id, settlement.ruling) if record.search_id else None
            if earlier is not None:
                return earlier
            for base in sorted(record.bases, key=lambda audited: audited.id) if settlement.facts else ():
                _hold(connection, base.id, settlement.user_id)
            if not add_facts(connection, settlement):
                refused = settlement.refuse(Failure.BUDGET_FACTS)
                _SET_RULING.change(
                    connection, {"where_id": record.search_id, "ruling": refused.ruling.model_dump_json()}
                )
                _write_outcome(connection, refused, signer)
                return refused.ruling
            _write_outcome(connection, settlement, signer)
            return None

        return await self._database.write(work)

    async def read_shown(self, search_id: str) -> tuple[ChunkShown, ...]:
        """Return the chunks that a search has shown."""
        return await self._database.read(lambda connection: read_shown(connection, search_id))

    async def find_unreported(self, before: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of the oldest searches until that instant of which no outcome was settled."""
        asked = {"before": before, "most": limit}
        found = await self._database.read(lambda connection: _FIND_UNREPORTED.rows(connection, asked))
        return tuple(row["id"] for row in found)

    async def count_unassigned(self, since: datetime) -> int:
        """Count the audit records since then that belong to no tenant."""
        (row,) = await self._database.read(lambda connection: _COUNT_UNASSIGNED.rows(connection, {"since": since}))
        return row["records"]

    async def count_canary_replies(self, model: str, since: datetime) -> int:
        """Count the recorded searches since then in which a reply of this model held canaries; they are few."""
        found = await self._database.read(lambda connection: _CANARY_REPLIES.rows(connection, {"since": since}))
        return sum(orjson.loads(row["versions"] or "{}").get("model") == model for row in found)

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        """Count a cut as a refusal."""

        def work(connection: Connection) -> None:
            for base_id in sorted(base_ids):
                count_refusal(connection, base_id, user_id, now)

        await self._database.write(work)

    async def remove_old(self, before: datetime) -> None:
        """Delete settled searches with their charges and sent chunks, and stored results, in short transactions."""
        is_old = (_search.c.searched_at <= before) & _search.c.ruling.is_not(None)
        old = select(_search.c.id).where(is_old).limit(REMOVED_PER_STEP)
        searches = delete(_search).where(_search.c.id.in_(old))

        def work(connection: Connection) -> bool:
            removed = connection.execute(searches).rowcount
            return removed + remove_results(connection, before, REMOVED_PER_STEP) > 0

        while await self._database.write(work):
            continue


def _write_charge(
    connection: Connection, search: SealedSearch, candidates: Sequence[Candidate], admission: SearchAdmission
) -> None:
    _ADD_SEARCH.change(connection, rows.search_parameters(search, admission))
    owner = {"search_id": search.id, "user_id": search.user_id, "conversation_id": search.conversation_id}
    charged = {**owner, "charged_at": search.searched_at}
    _ADD_CHARGE.change(connection, *({**charged, "knowledge_base_id": base_id} for base_id in search.base_ids))
    admitted = frozenset(admission.chunk_ids)
    sent = [
        {**owner, **candidate.model_dump(), "served_at": search.searched_at}
        for candidate in candidates
        if candidate.chunk_id in admitted
    ]
    if sent:
        _ADD_SERVED.change(connection, *sent)


def _write_outcome(connection: Connection, settlement: Settlement, signer: ReceiptSigner) -> None:
    record = settlement.record
    _ADD_RECORD.change(connection, rows.record_parameters(record))
    if settlement.released is not None and settlement.cache_key is not None:
        base_ids = [base.id for base in record.bases]
        keep_released(connection, settlement.cache_key, base_ids, settlement.released, record.recorded_at)
    if settlement.counts_towards_pause:
        for base in sorted(record.bases, key=lambda audited: audited.id):
            count_refusal(connection, base.id, settlement.user_id, record.recorded_at)
    if settlement.shown is not None:
        add_receipt(connection, settlement, settlement.shown, signer)


def _rule(connection: Connection, search_id: str, ruling: Ruling) -> Ruling | None:
    """Store the ruling on a search; if the search has a ruling already, return that and change nothing."""
    row = _HOLD_SEARCH.first(connection, {"where_id": search_id})
    if row is not None and row["ruling"] is not None:
        return Ruling.model_validate_json(row["ruling"])
    _SET_RULING.change(connection, {"where_id": search_id, "ruling": ruling.model_dump_json()})
    return None


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
    _SET_MEMBER.change(connection, {**key, **refusal_parameters(add_refusal(refusals, now))})


def _hold(connection: Connection, base_id: str, user_id: str) -> tuple[int, RefusalHistory]:
    key = {"where_base_id": base_id, "where_user_id": user_id}
    base = _HOLD_BASE.first(connection, {"where_base_id": base_id})
    if base is None:
        raise PermissionDenied("The user is no longer a member of a knowledge base.", param="knowledge_base_ids")
    _ADD_MEMBER.change(connection, key)
    (member,) = _HOLD_MEMBER.rows(connection, key)
    return base["chunk_count"], to_refusals(member)
