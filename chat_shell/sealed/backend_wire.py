"""The two calls to the backend for restricted searches: fetch evidence, and have the outcome recorded.

The text of documents is wrapped as soon as it is read, and no exception that leaves this module holds any of it.
"""

from dataclasses import dataclass
from typing import Protocol

import aiohttp
import orjson

from chat_shell.sealed.outcome import Outcome, SealedSearch, SealedSearchResult
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.secondary_model import read_at_most
from chat_shell.sealed.verdicts import Released
from shared.disclosure.frame import BaseRules
from shared.ids import request_id_headers
from shared.models.knowledge_api import (
    KNOWLEDGE_PATH,
    MAX_SEALED_CHUNKS,
    OutcomeAnswer,
    ProtectedChunkShape,
    ReportedOutcome,
    SealedPart,
    SealedSearchAnswer,
    SearchByTicket,
    TicketRequest,
    WeighByTicket,
    WeighedAnswer,
    body_of,
)
from shared.models.safe_summary import Failure, SummaryVersions

WHOLE_BELOW_TOKENS = 12_000
"""A base of at most so many tokens is read whole: slightly more than 24 chunks of 400 tokens."""

MAX_ANSWER_BYTES = 4_194_304
"""Far more than 24 chunks need; a longer answer is treated as unreadable."""

_REFUSED_SEARCH = {401: Failure.BAD_TICKET, 403: Failure.ACCESS_CHANGED}


@dataclass(frozen=True, slots=True)
class OutcomeReceipt:
    """The backend's answer to an outcome; `status` is None where no HTTP answer came.

    An answer that cannot be read counts as not recorded.
    """

    status: int | None
    recorded: bool = False
    release: bool = False
    reason: str = ""


class SealedBackend(Protocol):
    """The backend as the sealed room needs it; the caller sets the timeout."""

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        """Search with the turn's ticket; the backend derives the access again and charges the budget."""
        ...

    async def weigh(self, search: SealedSearch, search_id: str, released: Released) -> WeighedAnswer | Failure:
        """Have what would be released compared with the source by its meaning."""
        ...

    async def record(self, search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> OutcomeReceipt:
        """Have an outcome recorded."""
        ...


class HttpSealedBackend:
    """The port `SealedBackend` over HTTP; the caller closes the session."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, service_token: str):
        self._session = session
        self._url = base_url.rstrip("/") + KNOWLEDGE_PATH
        self._headers = {"Authorization": f"Bearer {service_token}", "Content-Type": "application/json"}

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        """Search; see the protocol."""
        asked = SearchByTicket(
            ticket=search.ticket,
            query=search.query,
            knowledge_base_ids=list(search.knowledge_base_ids),
            limit=MAX_SEALED_CHUNKS,
            whole_below_tokens=WHOLE_BELOW_TOKENS,
            sealed=versions,
        )
        status, answer = await self._post("/search", search, asked)
        if status != 200:
            return _REFUSED_SEARCH.get(status or 0, Failure.AUDIT_UNAVAILABLE)
        try:
            return _result(SealedSearchAnswer.model_validate(answer).sealed)
        except ValueError:
            return Failure.AUDIT_UNAVAILABLE

    async def weigh(self, search: SealedSearch, search_id: str, released: Released) -> WeighedAnswer | Failure:
        """Weigh what would be released; see the protocol."""
        asked = WeighByTicket(ticket=search.ticket, search_id=search_id, texts=list(released.texts))
        status, answer = await self._post("/weigh", search, asked)
        try:
            return WeighedAnswer.model_validate(answer) if status == 200 else Failure.MODEL_UNAVAILABLE
        except ValueError:
            return Failure.MODEL_UNAVAILABLE

    async def record(self, search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> OutcomeReceipt:
        """Have an outcome recorded; see the protocol."""
        status, answer = await self._post("/outcomes", search, _report_of(search, versions, outcome))
        if status != 200:
            return OutcomeReceipt(status)
        try:
            given = OutcomeAnswer.model_validate(answer, strict=True)
        except ValueError:
            return OutcomeReceipt(status)
        return OutcomeReceipt(status, given.recorded, given.release, given.reason)

    async def _post(self, path: str, search: SealedSearch, asked: TicketRequest) -> tuple[int | None, object]:
        """Return status and parsed body; no status where no answer came, and None for a body that cannot be read."""
        status: int | None = None
        try:
            async with self._session.post(
                self._url + path,
                data=body_of(asked),
                headers=self._headers | request_id_headers(search.request_id),
                timeout=aiohttp.ClientTimeout(total=None),
                allow_redirects=False,
            ) as response:
                status = response.status
                received = await read_at_most(response, MAX_ANSWER_BYTES)
            return status, orjson.loads(received or b"")
        except (aiohttp.ClientError, OSError, ValueError):
            return status, None


def _result(sealed: SealedPart) -> SealedSearchResult:
    """Return an answer as a value.

    Raises:
        ValueError: the earlier release cannot be read.
    """
    if sealed.refusal is not None:
        return SealedSearchResult(sealed.search_id, refusal=sealed.refusal)
    if sealed.released is not None:
        kept = Released.read_back(sealed.released.model_dump())
        if kept is None:
            raise ValueError
        return SealedSearchResult(sealed.search_id, released=kept)
    found = sealed.strict or sealed
    return SealedSearchResult(
        sealed.search_id,
        areas=None if sealed.strict is None else sealed.strict.areas,
        chunks=tuple(map(_wrap, found.chunks)),
        siblings=tuple(map(_wrap, found.siblings)),
        canary_replies=sealed.canary_replies,
        translatable_base_ids=frozenset(sealed.restricted_translation),
        rules=BaseRules(sealed.support, sealed.has_records),
        is_weighed=sealed.is_weighed and sealed.strict is None,
    )


def _wrap(chunk: ProtectedChunkShape) -> ProtectedChunk:
    def protect(text: str) -> ProtectedText:
        return ProtectedText(text, chunk.knowledge_base_id, chunk.chunk_id)

    return ProtectedChunk(
        knowledge_base_id=chunk.knowledge_base_id,
        chunk_id=chunk.chunk_id,
        ordinal=chunk.ordinal,
        document=protect(chunk.document),
        heading_path=tuple(map(protect, chunk.heading_path)),
        text=protect(chunk.text),
        canary=protect(chunk.canary),
    )


def _report_of(search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> ReportedOutcome:
    counted = ("rewrites", "latency_ms", "chunks_found", "chunks_sent", "canary_hits", "is_open_ask")
    told = {
        "ticket": search.ticket,
        **versions.model_dump(),
        **{name: getattr(outcome, name) for name in ("search_id", "decision", "reason", *counted)},
        "knowledge_base_ids": list(outcome.knowledge_base_ids),
        "gate_codes": list(outcome.gate_codes),
        "released": None if outcome.released is None else outcome.released.as_object(),
        **({} if outcome.facts is None else {"facts": [fact.model_dump() for fact in outcome.facts]}),
    }
    return ReportedOutcome.model_validate(told)
