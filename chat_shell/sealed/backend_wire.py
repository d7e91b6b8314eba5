"""The backend's two calls for restricted searches: evidence in, outcome out.

Text of documents is wrapped while it is read, and nothing here raises with any of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import aiohttp
import orjson

from chat_shell.sealed.outcome import Found, Outcome, SealedAsk
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.reading import read_at_most
from chat_shell.sealed.released import Released
from shared.ids import request_id_headers
from shared.models.safe_summary import Failure, SummaryVersions

PATH = "/internal/v1/knowledge"

MAX_CHUNKS = 24
WHOLE_BELOW_TOKENS = 12_000
"""24 chunks of 400 tokens, and some: a base so small is read whole."""

MAX_ANSWER_BYTES = 4_194_304
"""Far above 24 chunks; an answer beyond it is none."""

_REFUSED_SEARCH = {401: Failure.BAD_TICKET, 403: Failure.ACCESS_CHANGED}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answer to an outcome; without a readable one `status` may be None and nothing counts as recorded."""

    status: int | None
    recorded: bool = False
    release: bool = False
    reason: str = ""


class SealedBackend(Protocol):
    """The backend as the room needs it; the caller sets the time."""

    async def search(self, ask: SealedAsk, versions: SummaryVersions) -> Found | Failure:
        """Search, on the turn's ticket; the backend derives the access again and charges the budget."""
        ...

    async def record(self, ask: SealedAsk, versions: SummaryVersions, outcome: Outcome) -> Recorded:
        """Have an outcome recorded."""
        ...


class HttpSealedBackend:
    """Asks over HTTP; the session is the caller's to close."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, service_token: str):
        self._session = session
        self._url = base_url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {service_token}", "Content-Type": "application/json"}

    async def search(self, ask: SealedAsk, versions: SummaryVersions) -> Found | Failure:
        """Search; see the protocol."""
        body = {
            "ticket": ask.ticket,
            "query": ask.query,
            "knowledge_base_ids": ask.knowledge_base_ids,
            "limit": MAX_CHUNKS,
            "whole_below_tokens": WHOLE_BELOW_TOKENS,
            "sealed": versions.model_dump(),
        }
        status, answer = await self._post("/search", ask, body)
        if status != 200:
            return _REFUSED_SEARCH.get(status or 0, Failure.AUDIT_UNAVAILABLE)
        try:
            return _found(answer["sealed"])
        except (LookupError, TypeError, ValueError):
            return Failure.AUDIT_UNAVAILABLE

    async def record(self, ask: SealedAsk, versions: SummaryVersions, outcome: Outcome) -> Recorded:
        """Have an outcome recorded; see the protocol."""
        body = {"ticket": ask.ticket, **versions.model_dump(), **_outcome_json(outcome)}
        status, answer = await self._post("/outcomes", ask, body)
        if status != 200 or not isinstance(answer, dict):
            return Recorded(status)
        told = cast(dict[str, Any], answer)
        return Recorded(
            status,
            recorded=told.get("recorded") is True,
            release=told.get("release") is True,
            reason=str(told.get("reason", "")),
        )

    async def _post(self, path: str, ask: SealedAsk, body: Mapping[str, Any]) -> tuple[int | None, Any]:
        """Return status and parsed answer; no status where none came, and None for what is no JSON or too long."""
        status: int | None = None
        try:
            async with self._session.post(
                self._url + path,
                data=orjson.dumps(body),
                headers=self._headers | request_id_headers(ask.request_id),
                timeout=aiohttp.ClientTimeout(total=None),
                allow_redirects=False,
            ) as response:
                status = response.status
                received = await read_at_most(response, MAX_ANSWER_BYTES)
            return status, orjson.loads(received or b"")
        except (aiohttp.ClientError, OSError, ValueError):
            return status, None


def _found(sealed: Mapping[str, Any]) -> Found:
    """Read the sealed part of an answer.

    Raises:
        LookupError, TypeError, ValueError: it is not of the agreed form.
    """
    search_id, refusal, released = str(sealed["search_id"]), sealed["refusal"], sealed["released"]
    if refusal is not None:
        return Found(search_id, refusal=Failure(refusal))
    if released is not None:
        kept = Released.read_back(released)
        if kept is None:
            raise ValueError
        return Found(search_id, released=kept)
    chunks: Sequence[Mapping[str, Any]] = sealed["chunks"]
    return Found(
        search_id,
        chunks=tuple(map(_chunk, chunks)),
        siblings=tuple(map(_chunk, sealed.get("siblings", ()))),
        canary_replies=int(sealed["canary_replies"]),
    )


def _chunk(given: Mapping[str, Any]) -> ProtectedChunk:
    base_id, chunk_id = str(given["knowledge_base_id"]), str(given["chunk_id"])

    def protected(text: object) -> ProtectedText:
        if not isinstance(text, str):
            raise TypeError
        return ProtectedText(text, base_id, chunk_id)

    return ProtectedChunk(
        knowledge_base_id=base_id,
        chunk_id=chunk_id,
        ordinal=int(given["ordinal"]),
        document=protected(given["document"]),
        heading_path=tuple(map(protected, given["heading_path"])),
        text=protected(given["text"]),
        canary=protected(given["canary"]),
    )


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
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
        "released": None if outcome.released is None else outcome.released.as_object(),
    }
