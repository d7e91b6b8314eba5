"""Metrics and log lines of knowledge: time and size of searches, and descriptions that are withheld."""

from collections.abc import Callable, Sequence

import structlog
from prometheus_client import Histogram

from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.ports.index import ChunkSearch, Retrieval
from shared.telemetry import LogEvent
from shared.tracing import span_of

log = structlog.get_logger("backend.knowledge")

RETRIEVAL_SECONDS = Histogram(
    "ballast_retrieval_seconds",
    "A search of knowledge bases, or the reading of small ones whole",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


class TimedRetrieval:
    """A `Retrieval` over `ranking` and `chunks` that measures, and tells `note_use` the bases; it logs no query."""

    def __init__(self, ranking: ChunkSearch, chunks: Retrieval, note_use: Callable[[Sequence[str]], None]) -> None:
        self._ranking = ranking
        self._chunks = chunks
        self._note_use = note_use

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Search and measure."""
        self._note_use(base_ids)
        with RETRIEVAL_SECONDS.time(), span_of("search", {"ballast.knowledge_bases": len(base_ids)}) as span:
            hits = await self._ranking.search(base_ids, query, limit, filters)
            span.set({"ballast.hits": len(hits)})
        log.info(LogEvent.KNOWLEDGE_SEARCHED, knowledge_bases=list(base_ids), whole=False, hits=len(hits))
        return hits

    async def read_all(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        """Read whole and measure."""
        self._note_use(base_ids)
        with RETRIEVAL_SECONDS.time(), span_of("read_whole", {"ballast.knowledge_bases": len(base_ids)}):
            hits = await self._chunks.read_all(base_ids, token_limit)
        if hits is not None:
            log.info(LogEvent.KNOWLEDGE_SEARCHED, knowledge_bases=list(base_ids), whole=True, hits=len(hits))
        return hits

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        """Read without measuring: it is no search, and no use."""
        return await self._chunks.beginnings(document_ids, limit, most)


class LoggingDescriptionObserver:
    """The `DescriptionObserver` that logs; owners find here why a hint is not shown."""

    def texts_left_out(self, base_id: str, count: int) -> None:
        """Log how many texts were left out, and none of the texts."""
        log.warning("Description left out", knowledge_base=base_id, texts=count)
