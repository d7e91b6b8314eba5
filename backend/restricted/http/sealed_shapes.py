"""The JSON bodies between the sealed room and this service: all bounded in size, and every code of a closed list."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from backend.foundation.http.shapes import RequestBody
from backend.restricted.services.sealed_outcomes import Outcome
from backend.restricted.services.sealed_search import MAX_SEALED_CHUNKS, SealedAnswer, SealedChunk
from shared.models.safe_summary import (
    AnswerReason,
    Decision,
    Failure,
    GateBlock,
    GateCode,
    PolicyRefusal,
    Reason,
    ReleasedSummary,
    SummaryVersions,
)

MAX_LATENCY_MS = 86_400_000
MAX_CANARY_HITS = 10_000
MAX_REWRITES = 1

_Chunks = Annotated[int, Field(ge=0, le=MAX_SEALED_CHUNKS)]
_FROM_STRING = Field(strict=False)
_Code = Annotated[GateCode, _FROM_STRING]
_Reason = (
    Annotated[AnswerReason, _FROM_STRING]
    | Annotated[PolicyRefusal, _FROM_STRING]
    | Annotated[Failure, _FROM_STRING]
    | Annotated[GateBlock, _FROM_STRING]
)


class ProtectedChunkShape(BaseModel):
    """A chunk for the secondary model; `canary` is its document's."""

    knowledge_base_id: str
    chunk_id: str
    document: str
    heading_path: list[str]
    ordinal: int
    text: str
    canary: str


class SealedPart(BaseModel):
    """A refusal, or the earlier released result, or chunks and how often their model repeated canaries of late.

    `siblings` are other chunks of the same documents, for the gate alone. `restricted_translation` are the ids of the
    searched bases whose owners allow that their text is summarised in another language.
    """

    search_id: str
    refusal: Failure | None
    released: ReleasedSummary | None
    chunks: list[ProtectedChunkShape]
    siblings: list[ProtectedChunkShape]
    canary_replies: int
    restricted_translation: list[str]


class ReportedOutcome(RequestBody):
    """The outcome of a search in the sealed room; `search_id` is null for a request refused before any search."""

    ticket: str
    search_id: Annotated[str, Field(max_length=64)] | None
    knowledge_base_ids: list[str]
    policy_version: Annotated[str, Field(min_length=1, max_length=64)]
    gate_version: Annotated[str, Field(min_length=1, max_length=64)]
    prompt_version: Annotated[str, Field(min_length=1, max_length=64)]
    model: Annotated[str, Field(min_length=1, max_length=256)]
    decision: Annotated[Decision, _FROM_STRING]
    reason: _Reason
    gate_codes: Annotated[list[_Code], Field(max_length=2 * len(GateCode))]
    rewrites: Annotated[int, Field(ge=0, le=MAX_REWRITES)]
    latency_ms: Annotated[int, Field(ge=0, le=MAX_LATENCY_MS)]
    chunks_found: _Chunks
    chunks_sent: _Chunks
    canary_hits: Annotated[int, Field(ge=0, le=MAX_CANARY_HITS)]
    is_open_ask: bool = False
    released: ReleasedSummary | None

    def as_outcome(self) -> Outcome:
        """Return the outcome to be recorded, without `chunks_found`, which the charge has counted itself."""
        versions = {name: getattr(self, name) for name in SummaryVersions.model_fields}
        return Outcome(
            search_id=self.search_id,
            base_ids=tuple(self.knowledge_base_ids),
            versions=SummaryVersions.model_validate(versions),
            decision=self.decision,
            reason=self.reason,
            gate_codes=tuple(self.gate_codes),
            rewrites=self.rewrites,
            latency_ms=self.latency_ms,
            chunks_sent=self.chunks_sent,
            canary_hits=self.canary_hits,
            is_open_ask=self.is_open_ask,
            released=self.released,
        )


class OutcomeAnswer(BaseModel):
    """The outcome is on record; `reason` may differ from the reported one."""

    recorded: Literal[True] = True
    release: bool
    reason: Reason


def sealed_part(answer: SealedAnswer) -> SealedPart:
    """Return the answer to the sealed room as a JSON body."""
    return SealedPart(
        search_id=answer.search_id,
        refusal=answer.refusal,
        released=answer.released,
        chunks=[_chunk(chunk) for chunk in answer.chunks],
        siblings=[_chunk(chunk) for chunk in answer.siblings],
        canary_replies=answer.canary_replies,
        restricted_translation=list(answer.translatable_base_ids),
    )


def _chunk(sealed: SealedChunk) -> ProtectedChunkShape:
    hit = sealed.hit
    return ProtectedChunkShape(
        knowledge_base_id=hit.knowledge_base_id,
        chunk_id=hit.chunk.id,
        document=hit.document_name,
        heading_path=list(hit.chunk.heading_path),
        ordinal=hit.chunk.ordinal,
        text=hit.chunk.text,
        canary=sealed.canary,
    )
