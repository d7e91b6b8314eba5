"""Searches of restricted members, for the sealed room: the only way by which their text leaves this service."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from backend.knowledge.domain.knowledge import Binding, greatest_support, has_records
from backend.knowledge.domain.tickets import Ticket
from backend.restricted.domain.canaries import document_canary
from backend.restricted.domain.evidence import evidence_of
from backend.restricted.domain.released_results import result_key
from backend.restricted.domain.restricted import Candidate, SealedSearch, SearchAdmission, SearchRequest
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.ticketed_knowledge import TicketAccess, list_searched_bases
from backend.restricted.services.weigh_answers import AnswerWeighing
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.ports.index import Retrieval
from shared.disclosure.everyday import keep_everyday
from shared.errors import PermissionDenied
from shared.ids import IdPrefix, new_id
from shared.models.knowledge_api import MAX_SEALED_CHUNKS
from shared.models.safe_summary import LEAST_SUPPORT, Failure, ReleasedSummary, SummaryVersions

MAX_SIBLINGS_OF_DOCUMENT, MAX_SIBLINGS = 16, 96
"""The most sibling chunks of one document, and of all: some 150 KB, read for terms while the model writes.

The time that they add to a search is measured by `python -m tests.bench.sealed_room`.
"""

CANARY_WINDOW = timedelta(hours=1)


class SealedChunk(NamedTuple):
    """A chunk for the secondary model, and the canary of its document."""

    hit: ChunkHit
    canary: str


class SealedAnswer(NamedTuple):
    """A refusal, or what was released before, or chunks. `whole` says that these are all, in document order.

    `siblings` are other chunks of the same documents: no model reads them, so they are not charged, but the gate learns
    from them which words of the chunks are terms. With chunks, `canary_replies` counts the searches of the last hour in
    which the model that is to read them repeated canaries, for whomever and in whatever process. `areas` are what
    findings can be about where a base is strict, and None where prose may leave. `support` and `has_records` are
    those of the bases together. The owners of the bases
    `translatable_base_ids` allow that their text is summarised in another language.
    """

    search_id: str
    refusal: Failure | None = None
    released: ReleasedSummary | None = None
    whole: bool = False
    chunks: tuple[SealedChunk, ...] = ()
    siblings: tuple[SealedChunk, ...] = ()
    areas: tuple[str, ...] | None = None
    canary_replies: int = 0
    support: int = LEAST_SUPPORT
    has_records: bool = False
    is_weighed: bool = False
    translatable_base_ids: tuple[str, ...] = ()


class SearchTerms(NamedTuple):
    """The budgets of searches; `secret` is the key of canaries and of the names of results."""

    limits: RestrictedLimits
    secret: str


class SealedSearches:
    """Charged searches; whatever the role of the user, their text is for the sealed room alone."""

    def __init__(
        self,
        access: TicketAccess,
        retrieval: Retrieval,
        ledger: RestrictedLedger,
        audit: RestrictedAudit,
        weighing: AnswerWeighing,
        terms: SearchTerms,
    ) -> None:
        self._access = access
        self._retrieval = retrieval
        self._ledger = ledger
        self._audit = audit
        self._weighing = weighing
        self._limits, self._secret = terms

    async def search(self, ticket_text: str, request: SearchRequest, versions: SummaryVersions) -> SealedAnswer:
        """Charge a search and return what may be summarised of it. A refusal or a repeated release is audited.

        An equal search of the same user returns the result that was released before. It is not charged, because it
        calls no model and reveals nothing new.

        Raises:
            Unauthenticated: the ticket is forged or expired; that is audited.
            PermissionDenied: a base is not in it, the user is no longer a member, or the turn filters by attributes,
                which a restricted member could try out by it.
        """
        ticket = await self._access.verify(ticket_text)
        if ticket.search.filters is not None:
            raise PermissionDenied("Filters cannot be used where the access to a knowledge base is restricted.")
        bindings = await self._access.bindings(ticket, request.base_ids)
        search = self._begin(ticket, bindings, request.query, versions)
        if await self._ledger.is_paused(search.user_id, search.base_ids, search.searched_at):
            return await self._refuse(search, Failure.PAUSED)
        released = await self._ledger.find_released(search.cache_key)
        if released is not None:
            await self._audit.release_again(search, released)
            return SealedAnswer(search.id, released=released)
        areas = await self._access.find_areas(bindings)
        translatable = tuple(
            # A code is no translation: what says nothing but codes may be read in any language.
            binding.base.id
            for binding in bindings
            if binding.base.restricted_translation or areas is not None
        )
        hits, whole = await self._retrieve(search.base_ids, request, translatable)
        answer = await self._charge(search, hits, whole=whole)
        rules = {
            "support": greatest_support(bindings),
            "has_records": has_records(bindings),
            "is_weighed": self._weighing.is_on,
        }
        return answer._replace(areas=areas, translatable_base_ids=translatable, **rules)

    async def _charge(self, search: SealedSearch, hits: tuple[ChunkHit, ...], *, whole: bool) -> SealedAnswer:
        charged = await self._ledger.charge(search, tuple(map(_candidate, hits)), self._limits)
        since = search.searched_at - CANARY_WINDOW
        search, admission = charged.search, charged.admission
        refusal = admission.refusal or (None if hits else Failure.INSUFFICIENT_EVIDENCE)
        if refusal is not None:
            return await self._refuse(search, refusal, admission)
        admitted = frozenset(admission.chunk_ids)
        chunks = tuple(self._seal(hit) for hit in hits if hit.chunk.id in admitted)
        canary_replies = await self._ledger.count_canary_replies(search.versions.model, since)
        is_whole = whole and len(chunks) == len(hits)
        siblings = () if is_whole else await self._siblings(chunks)
        return SealedAnswer(search.id, whole=is_whole, chunks=chunks, siblings=siblings, canary_replies=canary_replies)

    async def _siblings(self, chunks: tuple[SealedChunk, ...]) -> tuple[SealedChunk, ...]:
        """Return the first chunks of the documents, best document first, because terms are introduced there."""
        document_ids = tuple(dict.fromkeys(chunk.hit.document_id for chunk in chunks))
        most = MAX_SIBLINGS + len(chunks)
        beginnings = await self._retrieval.beginnings(document_ids, MAX_SIBLINGS_OF_DOCUMENT, most)
        known = {chunk.hit.chunk.id for chunk in chunks}
        return tuple(self._seal(hit) for hit in beginnings if hit.chunk.id not in known)[:MAX_SIBLINGS]

    async def _retrieve(
        self, base_ids: tuple[str, ...], request: SearchRequest, translatable_base_ids: tuple[str, ...]
    ) -> tuple[tuple[ChunkHit, ...], bool]:
        """Return chunks, and whether they are all chunks of the bases; hits that are weak evidence are dropped.

        Only the everyday words of the query are asked for, so that no result depends on its names and figures. A query
        without a topic is about a whole base: a small base is returned whole, of a larger one the hits. All hits of
        both rankings are judged, and in a thread, because to read so many texts takes long.
        """
        limit = min(request.limit, MAX_SEALED_CHUNKS)
        query = keep_everyday(request.query)
        hits = await self._retrieval.search(base_ids, query, 2 * FUSION_DEPTH)
        found = await asyncio.to_thread(evidence_of, query, hits, translatable_base_ids, limit)
        if found is None:
            return (), False
        is_small = len(found) < limit
        everything = await self._retrieval.read_all(base_ids, request.whole_below_tokens) if is_small else None
        if everything is not None and len(everything) <= limit:
            return everything, True
        return found, False

    async def _refuse(
        self, search: SealedSearch, reason: Failure, admission: SearchAdmission | None = None
    ) -> SealedAnswer:
        await self._audit.refuse(search, reason, admission)
        return SealedAnswer(search.id, refusal=reason)

    def _begin(
        self, ticket: Ticket, bindings: tuple[Binding, ...], query: str, versions: SummaryVersions
    ) -> SealedSearch:
        bases = list_searched_bases(bindings)
        judged = self._weighing.add_version(versions)
        cache_key = result_key(self._secret, (ticket.tenant, ticket.user_id), bases, judged, query)
        search = self._access.search_of(ticket, bases, versions, cache_key)
        return search.model_copy(update={"id": new_id(IdPrefix.SEALED_SEARCH)})

    def _seal(self, hit: ChunkHit) -> SealedChunk:
        return SealedChunk(hit, document_canary(self._secret, hit.document_id))


def _candidate(hit: ChunkHit) -> Candidate:
    return Candidate(
        knowledge_base_id=hit.knowledge_base_id,
        document_id=hit.document_id,
        chunk_id=hit.chunk.id,
        ordinal=hit.chunk.ordinal,
    )
