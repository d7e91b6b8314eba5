"""Metrics and log lines of the embedder and the reranker: how calls for searches end, and no text."""

import structlog
from prometheus_client import Counter

from backend.embeddings.domain import CallOutcome
from shared.errors import BallastError

log = structlog.get_logger("backend.embeddings")

_QUERY_EMBEDDINGS = Counter(
    "ballast_query_embeddings_total", "Questions of searches by what became of their vectors", ["outcome"]
)
_RERANKINGS = Counter("ballast_rerankings_total", "Searches by what became of their reordering", ["outcome"])


class CountingObserver:
    """The `CallObserver` that counts each call, and logs when a provider goes away and comes back."""

    def __init__(self, provider: str, counter: Counter) -> None:
        self._provider = provider
        self._counter = counter

    def note_end(self, outcome: CallOutcome) -> None:
        """Count it."""
        self._counter.labels(outcome.value).inc()

    def went_away(self, error: BallastError | None) -> None:
        """Log it; the messages of our errors hold neither text nor addresses."""
        cause = error.message if error is not None else "it does not answer within the deadline of a search"
        log.warning("Searches go on without it", provider=self._provider, cause=cause)

    def came_back(self) -> None:
        """Log it."""
        log.info("Searches have it again", provider=self._provider)


QUESTION_OBSERVER = CountingObserver("embedder", _QUERY_EMBEDDINGS)
RERANKING_OBSERVER = CountingObserver("reranker", _RERANKINGS)
