"""The values of the sealed searches from and to the bodies of the internal API."""

from backend.restricted.services.sealed_outcomes import Outcome
from backend.restricted.services.sealed_search import SealedAnswer, SealedChunk
from shared.models.knowledge_api import ProtectedChunkShape, ReportedOutcome, SealedPart
from shared.models.safe_summary import SummaryVersions


def outcome_in(reported: ReportedOutcome) -> Outcome:
    """Return the outcome to be recorded, without `chunks_found`, which the charge has counted itself."""
    versions = {name: getattr(reported, name) for name in SummaryVersions.model_fields}
    return Outcome(
        search_id=reported.search_id,
        base_ids=tuple(reported.knowledge_base_ids),
        versions=SummaryVersions.model_validate(versions),
        decision=reported.decision,
        reason=reported.reason,
        gate_codes=tuple(reported.gate_codes),
        rewrites=reported.rewrites,
        latency_ms=reported.latency_ms,
        chunks_sent=reported.chunks_sent,
        canary_hits=reported.canary_hits,
        is_open_ask=reported.is_open_ask,
        released=reported.released,
    )


def sealed_part(answer: SealedAnswer) -> SealedPart:
    """Return the answer to the sealed room as a JSON body."""
    return SealedPart(
        search_id=answer.search_id,
        refusal=answer.refusal,
        released=answer.released,
        chunks=tuple(map(_chunk, answer.chunks)),
        siblings=tuple(map(_chunk, answer.siblings)),
        canary_replies=answer.canary_replies,
        restricted_translation=tuple(answer.translatable_base_ids),
    )


def _chunk(sealed: SealedChunk) -> ProtectedChunkShape:
    hit = sealed.hit
    return ProtectedChunkShape(
        knowledge_base_id=hit.knowledge_base_id,
        chunk_id=hit.chunk.id,
        document=hit.document_name,
        heading_path=hit.chunk.heading_path,
        ordinal=hit.chunk.ordinal,
        text=hit.chunk.text,
        canary=sealed.canary,
    )
