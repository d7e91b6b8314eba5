"""The ledger of restricted searches in memory."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from backend.restricted.domain.receipts import EMPTY_CHAIN, ChainEnd, ReceiptQuery, RestsOn, write_receipt
from backend.restricted.domain.restricted import (
    AuditPage,
    AuditQuery,
    AuditRecord,
    Candidate,
    ChargedSearch,
    RefusalHistory,
    Ruling,
    SealedSearch,
    Settlement,
)
from backend.restricted.domain.restricted_budget import DAY, MONTH, BaseUsage, RestrictedLimits, add_refusal, admit
from backend.restricted.domain.told_facts import ChunkShown, is_overspent
from shared.errors import NotFound, PermissionDenied, Unavailable
from shared.models.knowledge_api import ToldFact
from shared.models.safe_summary import Failure, ReleasedSummary
from shared.receipts import ReceiptSigner, SealedReceipt
from tests.fakes.store_knowledge import FakeKnowledge


class _Kept(NamedTuple):
    released: ReleasedSummary
    base_ids: frozenset[str]
    released_at: datetime


class FakeSafeSummaryObserver:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.decided_records: list[AuditRecord] = []
        self.not_closed: list[str] = []

    def note_decision(self, record: AuditRecord) -> None:
        self.decided_records.append(record)

    def not_closable(self, search_id: str, error: BaseException) -> None:
        self.not_closed.append(search_id)


class FakeRestrictedLedger:
    """A `RestrictedLedger` and an `AuditTrail` at once; while `is_away` nothing can be written."""

    def __init__(self, knowledge: FakeKnowledge) -> None:
        self.is_away = False
        self.records: list[AuditRecord] = []
        self._knowledge = knowledge
        self._searches: dict[str, ChargedSearch] = {}
        self._served: dict[str, list[Candidate]] = {}
        self._refusals: dict[tuple[str, str], RefusalHistory] = {}
        self._kept: dict[str, _Kept] = {}
        self._receipts: dict[str, list[tuple[SealedReceipt, list[str]]]] = {}
        self._told: dict[str, list[tuple[ToldFact, datetime]]] = {}
        self._documents: dict[str | None, list[str]] = {}

    async def charge(
        self, search: SealedSearch, candidates: Sequence[Candidate], limits: RestrictedLimits
    ) -> ChargedSearch:
        self._require_writing()
        usages = [self._usage(search, base_id) for base_id in sorted(search.base_ids)]
        for kept in self._searches.values():
            if kept.ruling is None and _identity(kept.search) == _identity(search):
                return kept
        admission = admit(usages, candidates, limits, search.searched_at)
        charged = ChargedSearch(search=search, admission=admission, ruling=None)
        if admission.refusal is None:
            self._searches[search.id] = charged
            self._served[search.id] = [one for one in candidates if one.chunk_id in admission.chunk_ids]
        return charged

    async def find_search(self, search_id: str) -> ChargedSearch | None:
        return self._searches.get(search_id)

    async def is_paused(self, user_id: str, base_ids: Sequence[str], now: datetime) -> bool:
        return any(self._refusals.get((base_id, user_id), RefusalHistory()).is_paused(now) for base_id in base_ids)

    async def find_released(self, cache_key: str) -> ReleasedSummary | None:
        kept = self._kept.get(cache_key)
        return kept.released if kept is not None and all(map(self._is_there, kept.base_ids)) else None

    async def settle(self, settlement: Settlement, signer: ReceiptSigner) -> Ruling | None:
        self._require_writing()
        record, over = settlement.record, None
        charged = self._searches.get(record.search_id or "")
        if charged is not None:
            if charged.ruling is not None:
                return charged.ruling
            told = [fact for fact in self._told.get(settlement.user_id, ()) if fact[1] > record.recorded_at - MONTH]
            if is_overspent([fact for fact, _ in told], settlement.facts, settlement.most_facts):
                settlement = settlement.refuse(Failure.BUDGET_FACTS)
                record, over = settlement.record, settlement.ruling
            else:
                told += [(fact, record.recorded_at) for fact in settlement.facts]
            self._told[settlement.user_id] = told
            self._searches[charged.search.id] = charged.model_copy(update={"ruling": settlement.ruling})
        self.records.append(record)
        base_ids = frozenset(base.id for base in record.bases)
        if settlement.released is not None and settlement.cache_key is not None:
            self._kept[settlement.cache_key] = _Kept(settlement.released, base_ids, record.recorded_at)
        if settlement.shown is not None:
            self._add_receipt(record, settlement, signer)
        if settlement.counts_towards_pause:
            for base_id in filter(self._is_there, base_ids):
                key = (base_id, settlement.user_id)
                self._refusals[key] = add_refusal(self._refusals.get(key, RefusalHistory()), record.recorded_at)
        return over

    async def read_shown(self, search_id: str) -> tuple[ChunkShown, ...]:
        texts = self._knowledge.texts_of_chunks()
        served = sorted(self._served.get(search_id, ()), key=lambda chunk: (chunk.document_id, chunk.ordinal))
        return tuple(ChunkShown(one.document_id, texts[one.chunk_id]) for one in served if one.chunk_id in texts)

    async def find_unreported(self, before: datetime, limit: int) -> tuple[str, ...]:
        if self.is_away:
            raise Unavailable("The database is not available.")
        kept = [one.search for one in self._searches.values() if one.ruling is None]
        overdue = sorted((one for one in kept if one.searched_at <= before), key=lambda one: one.searched_at)
        return tuple(search.id for search in overdue)[:limit]

    async def count_unassigned(self, since: datetime) -> int:
        return sum(record.tenant == "" and record.recorded_at > since for record in self.records)

    async def count_canary_replies(self, model: str, since: datetime) -> int:
        replies = [record for record in self.records if record.canary_hits and record.recorded_at > since]
        return sum(record.versions is not None and record.versions.model == model for record in replies)

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        for base_id in filter(self._is_there, base_ids):
            key = (base_id, user_id)
            self._refusals[key] = add_refusal(self._refusals.get(key, RefusalHistory()), now)

    async def remove_old(self, before: datetime) -> None:
        settled = [one for one in self._searches.values() if one.ruling is not None]
        for search_id in [one.search.id for one in settled if one.search.searched_at <= before]:
            del self._searches[search_id], self._served[search_id]
        self._kept = {key: kept for key, kept in self._kept.items() if kept.released_at > before}

    async def page(self, tenant: str, query: AuditQuery, user_hash: str | None = None) -> AuditPage:
        shown = [record for record in self.records if record.tenant in (tenant, "")]
        ordered = sorted(shown, key=lambda record: (record.recorded_at, record.id), reverse=query.descending)
        ids = [record.id for record in ordered]
        if query.after is not None and query.after not in ids:
            raise NotFound("No such record.", param="after")
        start = ids.index(query.after) + 1 if query.after is not None else 0
        found = tuple(record for record in ordered[start:] if _is_wanted(record, query, user_hash))
        return AuditPage(found[: query.limit], len(found) > query.limit)

    async def receipts(self, tenant: str, query: ReceiptQuery) -> Sequence[SealedReceipt]:
        mine = [(sealed, ids) for sealed, ids in self._receipts.get(tenant, ()) if query.document_id in (None, *ids)]
        return [sealed for sealed, _ in mine if orjson.loads(sealed.body)["number"] > query.after][: query.limit]

    async def end_of_receipts(self, tenant: str) -> ChainEnd:
        receipts = self._receipts.get(tenant, [])
        return ChainEnd(len(receipts), receipts[-1][0].digest) if receipts else EMPTY_CHAIN

    def _add_receipt(self, record: AuditRecord, settlement: Settlement, signer: ReceiptSigner) -> None:
        if not record.is_cached:
            served = self._served.get(record.search_id or "", [])
            self._documents[settlement.cache_key] = sorted({chunk.document_id for chunk in served})
        ids = self._documents.get(settlement.cache_key, [])
        receipts = self._receipts.setdefault(record.tenant, [])
        end = ChainEnd(len(receipts), receipts[-1][0].digest) if receipts else EMPTY_CHAIN
        documents = [RestsOn(document_id=document_id, sha256="") for document_id in ids]
        assert settlement.shown is not None
        receipts.append((write_receipt(record, settlement.shown, documents, end, signer), ids))

    def _usage(self, search: SealedSearch, base_id: str) -> BaseUsage:
        if not self._is_there(base_id):
            raise PermissionDenied("No such base.", param="knowledge_base_ids")
        now = search.searched_at
        mine = [
            kept.search
            for kept in self._searches.values()
            if kept.search.user_id == search.user_id and base_id in kept.search.base_ids
        ]
        recent = [one for one in mine if one.searched_at > now - MONTH]
        today = [one for one in recent if one.searched_at > now - DAY]
        return BaseUsage(
            knowledge_base_id=base_id,
            chunk_count=self._knowledge.chunk_count(base_id),
            refusals=self._refusals.get((base_id, search.user_id), RefusalHistory()),
            conversation=sum(one.conversation_id == search.conversation_id for one in recent),
            day=len(today),
            month=len(recent),
            served_today=frozenset(
                chunk.chunk_id for one in today for chunk in self._served[one.id] if chunk.knowledge_base_id == base_id
            ),
        )

    def _is_there(self, base_id: str) -> bool:
        return base_id in self._knowledge.base_ids

    def _require_writing(self) -> None:
        if self.is_away:
            raise Unavailable("The database is not available.")


def _identity(search: SealedSearch) -> tuple[str, str]:
    return search.turn_id, search.cache_key


def _is_wanted(record: AuditRecord, query: AuditQuery, user_hash: str | None) -> bool:
    return (
        user_hash in (None, record.user_hash)
        and query.knowledge_base_id in (None, *(base.id for base in record.bases))
        and query.reason in (None, record.reason)
    )
