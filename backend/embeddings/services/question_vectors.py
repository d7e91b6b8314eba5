"""The vectors of questions, in time for their searches: equal questions cost one call to the embedder."""

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from backend.embeddings.domain import CallOutcome, EmbeddedQuery, TextKind
from backend.embeddings.ports import CallObserver, Embedder, MeaningPorts
from backend.embeddings.services.timely_calls import Timely, TimelyCalls
from backend.foundation.domain.bounded import Bounded

KEPT_QUESTIONS = 256
"""With 1,024 numbers each, their vectors take 1 MB."""

MAX_QUESTION_CHARACTERS = 4_000
"""What is longer is cut: models read a few hundred words of a question, and the rest costs time."""


class _Question(NamedTuple):
    """A text, and the bases that are asked."""

    text: str
    asked_of: frozenset[str]


class QuestionVectors:
    """A `QuestionEmbedding` over an embedder, with a small memory of the latest questions."""

    def __init__(self, embedder: Embedder, calls: TimelyCalls, observer: CallObserver) -> None:
        self._embedder = embedder
        self._calls = calls
        self._observer = observer
        self._kept: Bounded[_Question, EmbeddedQuery] = Bounded(KEPT_QUESTIONS)
        self._running: dict[_Question, asyncio.Future[EmbeddedQuery | None]] = {}

    async def vector_of(self, query: str, asked_of: Collection[str]) -> EmbeddedQuery | None:
        """Return the vector of a question; None where it does not come in time."""
        found = await self._find(_Question(query.strip()[:MAX_QUESTION_CHARACTERS], frozenset(asked_of)))
        self._observer.note_end(found.outcome)
        return found.answer

    async def _find(self, question: _Question) -> Timely[EmbeddedQuery]:
        if not question.text:
            return Timely(CallOutcome.REFUSED, None)
        kept = self._kept.find(question)
        if kept is not None:
            return Timely(CallOutcome.CACHED, kept)
        running = self._running.get(question)
        if running is not None:
            # Whoever asked first has less time left than this search: it waits no longer than it may.
            answer = await asyncio.shield(running)
            return Timely(CallOutcome.SHARED if answer is not None else CallOutcome.FAILED, answer)
        return await self._ask(question)

    async def _ask(self, question: _Question) -> Timely[EmbeddedQuery]:
        found: Timely[EmbeddedQuery] = Timely(CallOutcome.FAILED, None)
        self._running[question] = shared = asyncio.get_running_loop().create_future()
        try:
            found = await self._calls.attempt(lambda: self._embed(question.text))
        finally:
            # A search that is cancelled lets those that wait for it go on by words.
            del self._running[question]
            shared.set_result(found.answer)
        if found.answer is not None:
            self._kept.put(question, found.answer)
        return found

    async def _embed(self, text: str) -> EmbeddedQuery:
        [vector] = await self._embedder.embed([text], TextKind.QUERY)
        return EmbeddedQuery(await self._embedder.model(), vector)


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
