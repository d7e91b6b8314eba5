"""Search, built over the database, and over an engine beside it where one is set."""

from contextlib import AsyncExitStack
from typing import Any

from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.foundation.sql.database import Database
from backend.search.ports.engine import ChunkEngine
from backend.search.ports.index import SearchIndex
from backend.search.services.embedding_worker import ChangedBases, EmbeddingWorker
from backend.search.services.fused_search import FusedSearch, SearchServices
from backend.search.services.joined_copies import JoinedCopies
from backend.search.sql.index import BuiltInSearch, SqlSearchIndex
from backend.search.sql.vectors import SqlChunkVectors
from backend.search.sql.word_runs import SqlWordRuns
from backend.search.telemetry.embedding import CountingEmbeddingObserver
from shared.clock import Clock


def build_search(
    database: Database, clock: Clock, meaning: MeaningPorts, engine: ChunkEngine | None = None
) -> BuiltInSearch:
    """Build search over the index, by meaning as well where the operator has set up `meaning`."""
    changed, vectors = ChangedBases(), SqlChunkVectors(database)
    built_in = SqlSearchIndex(database, clock)
    index = built_in if engine is None else _follow(built_in, engine, database, clock)
    ranking = JoinedCopies(index if meaning == NO_MEANING else FusedSearch(index, vectors, meaning))
    embedding = EmbeddingWorker(vectors, meaning.embedder, changed, CountingEmbeddingObserver(), clock)
    runs = SqlWordRuns(database, built_in.loaded)
    return SearchServices(index, built_in, ranking, runs, vectors, embedding, changed)


def open_engine(url: str, stack: AsyncExitStack) -> ChunkEngine | None:
    """Return the engine of an address, which is reached at its first use and closed with the stack; None without one.

    Raises:
        ValueError: its library is not installed.
    """
    if not url:
        return None
    from backend.search.milvus.chosen import load_milvus
    from backend.search.milvus.engine import MilvusEngine

    engine = MilvusEngine(url, load_milvus())
    stack.push_async_callback(engine.close)
    return engine


def _follow(built_in: SqlSearchIndex, engine: ChunkEngine, database: Database, clock: Clock) -> SearchIndex[Any]:
    from backend.search.milvus.engine import SETTLE_SECONDS
    from backend.search.services.engine_index import EngineIndex
    from backend.search.sql.engine_log import SqlEngineLog
    from backend.search.telemetry.engine import CountingEngineObserver

    log = SqlEngineLog(database, clock, SETTLE_SECONDS)
    return EngineIndex(built_in, engine, log, CountingEngineObserver())
