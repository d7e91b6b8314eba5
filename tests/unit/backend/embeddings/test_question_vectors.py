"""Vectors of questions: in time or not at all, and once for equal questions."""

import asyncio

import pytest

from backend.embeddings.domain import CallOutcome
from backend.embeddings.services.question_vectors import KEPT_QUESTIONS, MAX_QUESTION_CHARACTERS, QuestionVectors
from backend.embeddings.services.timely_calls import (
    FAILURES_BEFORE_PAUSE,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Breaker,
    TimelyCalls,
)
from shared.errors import BallastError, ModelRequestRejected, Unavailable
from tests.fakes.meaning import FakeEmbedder

BASES = ("kb_a", "kb_b")
AWAY = Unavailable("the embedder is away")


class Watched:
    """A `CallObserver` that remembers."""

    def __init__(self) -> None:
        self.outcomes: list[CallOutcome] = []
        self.told: list[str] = []

    def note_end(self, outcome: CallOutcome) -> None:
        self.outcomes.append(outcome)

    def went_away(self, error: BallastError | None) -> None:
        self.told.append(error.message if error is not None else "late")

    def came_back(self) -> None:
        self.told.append("back")


class Questions:
    """What is tested, over a fake embedder and a clock that a test turns."""

    def __init__(self, deadline_seconds: float = 20) -> None:
        self.now = 100.0
        self.embedder = FakeEmbedder()
        self.watched = Watched()
        breaker = Breaker(self.watched, lambda: self.now)
        self.vectors = QuestionVectors(self.embedder, TimelyCalls(deadline_seconds, breaker), self.watched)

    async def ask(self, query: str) -> CallOutcome:
        found = await self.vectors.vector_of(query, BASES)
        outcome = self.watched.outcomes[-1]
        assert (found is not None) == (outcome in (CallOutcome.ANSWERED, CallOutcome.CACHED, CallOutcome.SHARED))
        return outcome


async def test_an_equal_question_is_not_embedded_again() -> None:
    questions = Questions()
    first = await questions.vectors.vector_of("When do trains go?", BASES)
    again = await questions.vectors.vector_of("  When do trains go? ", BASES)
    assert first is not None
    assert first == again
    assert first.model == await questions.embedder.model()
    assert questions.embedder.texts == ["When do trains go?"]
    assert questions.watched.outcomes == [CallOutcome.ANSWERED, CallOutcome.CACHED]


async def test_a_question_to_other_bases_is_embedded_again() -> None:
    """Else its answer would come so soon that it tells what others have asked of bases that the asker cannot search."""
    questions = Questions()
    await questions.ask("why")
    for others in (("kb_a",), ("kb_a", "kb_c"), ("kb_a", "kb_b", "kb_c")):
        await questions.vectors.vector_of("why", others)
        assert questions.watched.outcomes[-1] is CallOutcome.ANSWERED
    await questions.vectors.vector_of("why", BASES[::-1])
    assert questions.watched.outcomes[-1] is CallOutcome.CACHED
    questions.embedder.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for asked_of in (["kb_d"], ["kb_e"]):
            group.create_task(questions.vectors.vector_of("why", asked_of))
        questions.embedder.called.clear()
        await questions.embedder.called.wait()
        await asyncio.sleep(0)
        questions.embedder.held.set()
    assert CallOutcome.SHARED not in questions.watched.outcomes


async def test_only_the_latest_questions_are_kept() -> None:
    questions = Questions()
    for number in range(KEPT_QUESTIONS):
        await questions.ask(f"question {number}")
    assert await questions.ask("question 0") is CallOutcome.CACHED
    assert await questions.ask("one more") is CallOutcome.ANSWERED
    assert await questions.ask("question 0") is CallOutcome.CACHED, "it was used after question 1"
    assert await questions.ask("question 1") is CallOutcome.ANSWERED


async def test_questions_at_the_same_time_share_one_call() -> None:
    questions = Questions()
    questions.embedder.held = asyncio.Event()
    asked = [asyncio.ensure_future(questions.vectors.vector_of("why", BASES)) for _ in range(5)]
    await questions.embedder.called.wait()
    questions.embedder.held.set()
    found = await asyncio.gather(*asked)
    assert len(set(found)) == 1
    assert found[0] is not None
    assert questions.embedder.texts == ["why"]
    assert sorted(questions.watched.outcomes) == [CallOutcome.ANSWERED, *[CallOutcome.SHARED] * 4]


async def test_who_shares_a_call_that_is_cancelled_goes_on_by_words() -> None:
    questions = Questions()
    questions.embedder.held = asyncio.Event()
    first = asyncio.ensure_future(questions.vectors.vector_of("why", BASES))
    await questions.embedder.called.wait()
    second = asyncio.ensure_future(questions.vectors.vector_of("why", BASES))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is None
    assert questions.watched.outcomes == [CallOutcome.FAILED]
    questions.embedder.held = None
    assert await questions.ask("why") is CallOutcome.ANSWERED


async def test_a_late_vector_is_done_without() -> None:
    questions = Questions(deadline_seconds=0.01)
    questions.embedder.held = asyncio.Event()
    assert await questions.ask("why") is CallOutcome.LATE
    questions.embedder.held = None
    assert await questions.ask("why") is CallOutcome.ANSWERED


async def test_a_failing_provider_is_left_alone_and_tried_now_and_then() -> None:
    questions = Questions()
    questions.embedder.failure = AWAY
    outcomes = [await questions.ask(f"question {number}") for number in range(FAILURES_BEFORE_PAUSE + 2)]
    assert outcomes == [CallOutcome.FAILED] * FAILURES_BEFORE_PAUSE + [CallOutcome.PAUSED] * 2
    assert len(questions.embedder.calls) == FAILURES_BEFORE_PAUSE
    questions.now += FIRST_PAUSE_SECONDS
    assert [await questions.ask("again") for _ in range(2)] == [CallOutcome.FAILED, CallOutcome.PAUSED]
    questions.embedder.failure = None
    questions.now += LONGEST_PAUSE_SECONDS
    assert [await questions.ask(f"new {number}") for number in range(3)] == [CallOutcome.ANSWERED] * 3
    assert questions.watched.told == [AWAY.message, "back"]


async def test_one_question_at_a_time_tries_a_provider_that_was_away() -> None:
    questions = Questions()
    questions.embedder.failure = AWAY
    for number in range(FAILURES_BEFORE_PAUSE):
        await questions.ask(f"question {number}")
    questions.now += LONGEST_PAUSE_SECONDS
    questions.embedder.called.clear()
    questions.embedder.held = asyncio.Event()
    trying = asyncio.ensure_future(questions.vectors.vector_of("probe", BASES))
    await questions.embedder.called.wait()
    assert await questions.ask("another") is CallOutcome.PAUSED
    questions.embedder.held.set()
    assert await trying is None


async def test_a_refused_question_says_nothing_of_the_provider() -> None:
    questions = Questions()
    questions.embedder.failure = ModelRequestRejected("no")
    outcomes = [await questions.ask(f"question {number}") for number in range(FAILURES_BEFORE_PAUSE + 2)]
    assert set(outcomes) == {CallOutcome.REFUSED}
    assert questions.watched.told == []


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_nothing_is_not_asked(query: str) -> None:
    questions = Questions()
    assert await questions.ask(query) is CallOutcome.REFUSED
    assert questions.embedder.calls == []


async def test_a_long_question_is_cut() -> None:
    questions = Questions()
    await questions.ask("x" * 100_000)
    assert [len(text) for text in questions.embedder.texts] == [MAX_QUESTION_CHARACTERS]
