"""Calls that a search waits for: none lasts longer than its deadline, and a provider that is away costs no time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from backend.embeddings.domain import CallOutcome
from backend.embeddings.ports import CallObserver, ScoringModel
from shared.errors import BallastError, ModelRequestRejected

FAILURES_BEFORE_PAUSE = 3
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0

Answer = TypeVar("Answer")


class Timely(NamedTuple, Generic[Answer]):
    """What became of a call; `answer` is None unless it was answered."""

    outcome: CallOutcome
    answer: Answer | None


class Breaker:
    """Keeps calls from a provider that has failed several times in a row, but for one now and then that tries it.

    `now` returns seconds that never go back.
    """

    def __init__(self, observer: CallObserver, now: Callable[[], float]) -> None:
        self._observer = observer
        self._now = now
        self._failures = 0
        self._paused_until = 0.0

    def permits(self) -> bool:
        """Say whether a call may be made; a call that tries a failing provider keeps the others away meanwhile."""
        if self._failures < FAILURES_BEFORE_PAUSE:
            return True
        if self._now() < self._paused_until:
            return False
        self._pause()
        return True

    def note_success(self) -> None:
        """Take note of an answer."""
        if self._failures >= FAILURES_BEFORE_PAUSE:
            self._observer.came_back()
        self._failures = 0

    def note_failure(self, error: BallastError | None) -> None:
        """Take note of a failure; None stands for an answer that did not come in time."""
        self._failures += 1
        if self._failures >= FAILURES_BEFORE_PAUSE:
            self._pause()
        if self._failures == FAILURES_BEFORE_PAUSE:
            self._observer.went_away(error)

    def _pause(self) -> None:
        doubled = FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - FAILURES_BEFORE_PAUSE, 16)
        self._paused_until = self._now() + min(doubled, LONGEST_PAUSE_SECONDS)


class TimelyCalls:
    """Runs calls to one provider, each within the deadline."""

    def __init__(self, deadline_seconds: float, breaker: Breaker) -> None:
        self._deadline_seconds = deadline_seconds
        self._breaker = breaker

    async def attempt(self, call: Callable[[], Awaitable[Answer]]) -> Timely[Answer]:
        """Run a call, unless the provider is to be left alone; its failure is an outcome, and no exception."""
        if not self._breaker.permits():
            return Timely(CallOutcome.PAUSED, None)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                answer = await call()
        except ModelRequestRejected:
            self._breaker.note_success()
            return Timely(CallOutcome.REFUSED, None)
        except BallastError as error:
            self._breaker.note_failure(error)
            return Timely(CallOutcome.FAILED, None)
        except TimeoutError:
            self._breaker.note_failure(None)
            return Timely(CallOutcome.LATE, None)
        self._breaker.note_success()
        return Timely(CallOutcome.ANSWERED, answer)


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
        self._observer.note_end(found.outcome)
        return found.answer
