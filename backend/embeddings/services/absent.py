"""Stand-ins for an embedder or a reranker that the operator has not set up."""

from collections.abc import Collection, Sequence

from backend.embeddings.domain import EmbeddedQuery
from backend.embeddings.ports import MeaningPorts


class NoQuestionEmbedding:
    """A `QuestionEmbedding` without an embedder."""

    async def vector_of(self, query: str, asked_of: Collection[str]) -> EmbeddedQuery | None:
        """Return None: questions are answered by words alone."""
        return None


class NoReranker:
    """A `Reranker` where none is set up."""

    async def scores(self, query: str, texts: Sequence[str]) -> tuple[float, ...] | None:
        """Return None: the order of the search stays."""
        return None


NO_MEANING = MeaningPorts(None, NoQuestionEmbedding(), NoReranker())
"""Search by words alone."""
