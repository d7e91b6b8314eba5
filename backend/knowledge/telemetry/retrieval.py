"""Metrics and log lines of knowledge: time and size of searches, and descriptions that are withheld."""

from collections.abc import Sequence

import structlog
from prometheus_client import Histogram

from backend.knowledge.ports.knowledge import Retrieval
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from shared.telemetry import LogEvent
from shared.tracing import span_of

log = structlog.get_logger("backend.knowledge")

RETRIEVAL_SECONDS = Histogram(
    "ballast_retrieval_seconds",
    "A search of knowledge bases, or the reading of small ones whole",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


class TimedRetrieval:
    """A `Retrieval` that measures another one; neither query nor text reaches a line."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Search and measure."""
        with RETRIEVAL_SECONDS.time(), span_of("search", {"ballast.knowledge_bases": len(base_ids)}) as span:
            hits = await self._retrieval.search(base_ids, query, limit, filters)
            span.set({"ballast.hits": len(hits)})
        log.info(LogEvent.KNOWLEDGE_SEARCHED, knowledge_bases=list(base_ids), whole=False, hits=len(hits))
        return hits

    async def everything(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        """Read whole and measure."""
        with RETRIEVAL_SECONDS.time(), span_of("read_whole", {"ballast.knowledge_bases": len(base_ids)}):
            hits = await self._retrieval.everything(base_ids, token_limit)
        if hits is not None:
            log.info(LogEvent.KNOWLEDGE_SEARCHED, knowledge_bases=list(base_ids), whole=True, hits=len(hits))
        return hits

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        """Read without measuring: it is no search."""
        return await self._retrieval.beginnings(document_ids, limit, most)


class LoggingDescriptionObserver:
    """The `DescriptionObserver` that logs; owners find here why a hint is not shown."""

    def texts_left_out(self, base_id: str, count: int) -> None:
        """Log how many texts were left out, and none of the texts."""
        log.warning("Description left out", knowledge_base=base_id, texts=count)
