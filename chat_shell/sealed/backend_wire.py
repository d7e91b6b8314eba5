"""The two calls to the backend for restricted searches: fetch evidence, and have the outcome recorded.

The text of documents is wrapped as soon as it is read, and no exception that leaves this module holds any of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import aiohttp
import orjson
from pydantic import BaseModel, Field

from chat_shell.sealed.bounded_body import read_at_most
from chat_shell.sealed.outcome import Outcome, SealedSearch, SealedSearchResult
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.released import Released
from shared.ids import request_id_headers
from shared.models.safe_summary import Failure, SummaryVersions

PATH = "/internal/v1/knowledge"

MAX_CHUNKS = 24
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

    async def record(self, search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> OutcomeReceipt:
        """Have an outcome recorded."""
        ...


class HttpSealedBackend:
    """The port `SealedBackend` over HTTP; the caller closes the session."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, service_token: str):
        self._session = session
        self._url = base_url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {service_token}", "Content-Type": "application/json"}

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        """Search; see the protocol."""
        body = {
            "ticket": search.ticket,
            "query": search.query,
            "knowledge_base_ids": search.knowledge_base_ids,
            "limit": MAX_CHUNKS,
            "whole_below_tokens": WHOLE_BELOW_TOKENS,
            "sealed": versions.model_dump(),
        }
        status, answer = await self._post("/search", search, body)
        if status != 200:
            return _REFUSED_SEARCH.get(status or 0, Failure.AUDIT_UNAVAILABLE)
        try:
            return _SearchAnswer.model_validate(answer).sealed.result()
        except ValueError:
            return Failure.AUDIT_UNAVAILABLE

    async def record(self, search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> OutcomeReceipt:
        """Have an outcome recorded; see the protocol."""
        body = {"ticket": search.ticket, **versions.model_dump(), **_outcome_json(outcome)}
        status, answer = await self._post("/outcomes", search, body)
        if status != 200:
            return OutcomeReceipt(status)
        try:
            given = _RecordAnswer.model_validate(answer, strict=True)
        except ValueError:
            return OutcomeReceipt(status)
        return OutcomeReceipt(status, given.recorded, given.release, given.reason)

    async def _post(self, path: str, search: SealedSearch, body: Mapping[str, object]) -> tuple[int | None, object]:
        """Return status and parsed body; no status where no answer came, and None for a body that cannot be read."""
        status: int | None = None
        try:
            async with self._session.post(
                self._url + path,
                data=orjson.dumps(body),
                headers=self._headers | request_id_headers(search.request_id),
                timeout=aiohttp.ClientTimeout(total=None),
                allow_redirects=False,
            ) as response:
                status = response.status
                received = await read_at_most(response, MAX_ANSWER_BYTES)
            return status, orjson.loads(received or b"")
        except (aiohttp.ClientError, OSError, ValueError):
            return status, None


class _ChunkAnswer(BaseModel):
    """A chunk as it is sent; the fields that hold text of documents are left out of its representation."""

    knowledge_base_id: str
    chunk_id: str
    ordinal: int
    document: str = Field(repr=False)
    heading_path: tuple[str, ...] = Field(repr=False)
    text: str = Field(repr=False)
    canary: str = Field(repr=False)

    def wrap(self) -> ProtectedChunk:
        def protected(text: str) -> ProtectedText:
            return ProtectedText(text, self.knowledge_base_id, self.chunk_id)

        return ProtectedChunk(
            knowledge_base_id=self.knowledge_base_id,
            chunk_id=self.chunk_id,
            ordinal=self.ordinal,
            document=protected(self.document),
            heading_path=tuple(map(protected, self.heading_path)),
            text=protected(self.text),
            canary=protected(self.canary),
        )


class _SealedAnswer(BaseModel):
    """The sealed part of a search's answer: a refusal, an earlier release, or else chunks.

    `restricted_translation` lists the bases whose owners allow it; where it is missing or has another form, none does.
    """

    search_id: str
    refusal: Failure | None
    released: object
    chunks: tuple[_ChunkAnswer, ...] = ()
    siblings: tuple[_ChunkAnswer, ...] = ()
    canary_replies: int = 0
    restricted_translation: object = ()

    def result(self) -> SealedSearchResult:
        """Return the answer as a value.

        Raises:
            ValueError: the earlier release cannot be read, or chunks and canaries are missing in their place.
        """
        if self.refusal is not None:
            return SealedSearchResult(self.search_id, refusal=self.refusal)
        if self.released is not None:
            kept = Released.read_back(self.released)
            if kept is None:
                raise ValueError
            return SealedSearchResult(self.search_id, released=kept)
        if not {"chunks", "canary_replies"} <= self.model_fields_set:
            raise ValueError
        return SealedSearchResult(
            self.search_id,
            chunks=tuple(chunk.wrap() for chunk in self.chunks),
            siblings=tuple(chunk.wrap() for chunk in self.siblings),
            canary_replies=self.canary_replies,
            translatable_base_ids=_ids_in(self.restricted_translation),
        )


class _SearchAnswer(BaseModel):
    sealed: _SealedAnswer


class _RecordAnswer(BaseModel):
    recorded: bool = False
    release: bool = False
    reason: str = ""


def _ids_in(value: object) -> frozenset[str]:
    """Return the ids in a JSON array of ids; none where the value is anything else."""
    ids = cast("list[object]", value) if isinstance(value, list) else []
    strings = frozenset(one for one in ids if isinstance(one, str))
    return strings if len(strings) == len(ids) else frozenset()


def _outcome_json(outcome: Outcome) -> dict[str, object]:
    return {
        "search_id": outcome.search_id,
        "knowledge_base_ids": outcome.knowledge_base_ids,
        "decision": outcome.decision,
        "reason": outcome.reason,
        "gate_codes": outcome.gate_codes,
        "rewrites": outcome.rewrites,
        "latency_ms": outcome.latency_ms,
        "chunks_found": outcome.chunks_found,
        "chunks_sent": outcome.chunks_sent,
        "canary_hits": outcome.canary_hits,
        "is_open_ask": outcome.is_open_ask,
        "released": None if outcome.released is None else outcome.released.as_object(),
    }
