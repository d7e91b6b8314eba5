"""What packages above search with, as one value."""

from dataclasses import dataclass
from typing import Generic

from backend.search.ports.index import ChunkSearch, Retrieval, SearchIndex, WordRuns, Work
from backend.search.ports.vectors import ChunkVectors
from backend.search.services.embedding_worker import ChangedBases, EmbeddingWorker


@dataclass(frozen=True)
class SearchServices(Generic[Work]):
    """Search over one index.

    `words` ranks by words alone, `ranking` by all that the operator has set up.
    """

    index: SearchIndex[Work]
    words: Retrieval
    ranking: ChunkSearch
    runs: WordRuns
    vectors: ChunkVectors
    embedding: EmbeddingWorker
    changed: ChangedBases

    def note_change(self, base_id: str) -> None:
        """Note that a change of the documents of a base, or of its permission to be embedded, is stored."""
        self.index.note_change(base_id)
        self.changed.note(base_id)
