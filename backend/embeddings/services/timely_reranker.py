"""Scores of texts, in time for their search."""

from collections.abc import Sequence

from backend.embeddings.ports import CallObserver, ScoringModel
from backend.embeddings.services.timely_calls import TimelyCalls


class TimelyReranker:
    """A `Reranker` over a model that may be slow or away."""

    def __init__(self, model: ScoringModel, calls: TimelyCalls, observer: CallObserver) -> None:
        self._model = model
        self._calls = calls
        self._observer = observer

    async def scores(self, query: str, texts: Sequence[str]) -> tuple[float, ...] | None:
        """Return a score for each text; None where they do not come in time."""
        if not texts:
            return ()
        found = await self._calls.attempt(lambda: self._model.score(query, texts))
        self._observer.ended(found.outcome)
        return found.answer
