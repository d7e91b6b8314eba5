"""Search, built over the database."""

from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.foundation.sql.database import Database
from backend.search.services.embedding_worker import ChangedBases, EmbeddingWorker
from backend.search.services.fused_search import FusedSearch, SearchServices
from backend.search.services.joined_copies import JoinedCopies
from backend.search.sql.index import BuiltInSearch, SqlSearchIndex
from backend.search.sql.vectors import SqlChunkVectors
from backend.search.sql.word_runs import SqlWordRuns
from backend.search.telemetry.embedding import CountingEmbeddingObserver
from shared.clock import Clock


def build_search(database: Database, clock: Clock, meaning: MeaningPorts) -> BuiltInSearch:
    """Build search over the built-in index, by meaning as well where the operator has set up `meaning`."""
    changed, vectors = ChangedBases(), SqlChunkVectors(database)
    index = SqlSearchIndex(database, clock)
    ranking = JoinedCopies(index if meaning == NO_MEANING else FusedSearch(index, vectors, meaning))
    embedding = EmbeddingWorker(vectors, meaning.embedder, changed, CountingEmbeddingObserver(), clock)
    return SearchServices(index, index, ranking, SqlWordRuns(database, index.loaded), vectors, embedding, changed)
