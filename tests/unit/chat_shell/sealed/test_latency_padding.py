"""The time of a search tells nothing: one that ends without a model call takes as long as one with a summary."""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from chat_shell.sealed.latency_padding import FIRST_SECONDS, KEPT_TIMES, LatencyPadding
from chat_shell.sealed.outcome import SealedSearch, SealedSearchResult
from chat_shell.sealed.summary_prompt import Messages
from chat_shell.sealed.verdicts import Refused
from shared.models.safe_summary import Failure, PolicyRefusal, SummaryVersions
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import FakeGate, FakeSealedBackend, FakeSecondary, RoomStage, protected_chunk
from tests.fakes.virtual_time import VirtualTime

SEARCHES = 500
SUMMARY_SECONDS = 20.0


class TimedBackend(FakeSealedBackend):
    """Takes a few hundredths of a second to search."""

    def __init__(self, clock: FakeClock, dice: random.Random):
        super().__init__()
        self._clock = clock
        self._dice = dice

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        self._clock.advance(self._dice.uniform(0.01, 0.08))
        return await super().search(search, versions)


class TimedSecondary(FakeSecondary):
    """Takes as long as models do: mostly some seconds, now and then many."""

    def __init__(self, clock: FakeClock, dice: random.Random):
        super().__init__()
        self._clock = clock
        self._dice = dice

    async def reply(self, messages: Messages) -> bytes | Failure:
        self._clock.advance(min(15.0, self._dice.lognormvariate(1.0, 0.5)))
        return await super().reply(messages)


ANSWERED = SealedSearchResult("s_1", chunks=(protected_chunk(),))
WITHOUT_MODEL = {
    "nothing found": SealedSearchResult("s_1"),
    "weak evidence": SealedSearchResult("s_1", refusal=Failure.INSUFFICIENT_EVIDENCE),
    "another language": SealedSearchResult("s_1", chunks=(protected_chunk("储备由值班人员检查。"),)),
    "too many chunks": SealedSearchResult("s_1", refusal=Failure.BUDGET_CHUNKS),
    "open circuit": SealedSearchResult("s_1", chunks=(protected_chunk(),), canary_replies=3),
}


def timed_stage(seed: int = 1) -> RoomStage:
    clock, dice = FakeClock(), random.Random(seed)
    return RoomStage(
        backend=TimedBackend(clock, dice),
        model=TimedSecondary(clock, dice),
        clock=clock,
        summary_seconds=SUMMARY_SECONDS,
    )


async def seconds_of(stage: RoomStage, found: SealedSearchResult, **ask: Any) -> float:
    stage.backend.found = found
    before = stage.clock.now()
    await stage.ask(deadline=before + timedelta(seconds=600), **ask)
    return (stage.clock.now() - before).total_seconds()


def distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest difference of two distribution functions (Kolmogorov and Smirnov)."""
    one, other = sorted(first), sorted(second)
    points = sorted({*one, *other})
    return max(abs(bisect_right(one, at) / len(one) - bisect_right(other, at) / len(other)) for at in points)


@pytest.mark.parametrize("without_model", first_of(*WITHOUT_MODEL.values()), ids=WITHOUT_MODEL.keys())
async def test_the_times_of_answers_and_of_searches_without_a_model_call_cannot_be_told_apart(
    without_model: SealedSearchResult,
):
    stage = timed_stage()
    for _ in range(KEPT_TIMES):
        await seconds_of(stage, ANSWERED)
    answered: list[float] = []
    refused: list[float] = []
    for _ in range(SEARCHES):
        answered.append(await seconds_of(stage, ANSWERED))
        refused.append(await seconds_of(stage, without_model))
    # 1.63 √(2/n) is the distance that two samples of one distribution exceed once in a hundred times.
    assert distance(answered, refused) < 1.63 * (2 / SEARCHES) ** 0.5
    assert len(stage.model.prompts) == KEPT_TIMES + SEARCHES
    unpadded = [seconds - wait for seconds, wait in zip(refused, stage.waits, strict=True)]
    assert distance(answered, unpadded) > 0.99


class SlowBackend(FakeSealedBackend):
    """Takes a few hundredths of a second to search, and finds what the query names."""

    def __init__(self, time: VirtualTime, dice: random.Random):
        super().__init__()
        self._time = time
        self._dice = dice

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        await self._time.sleep(self._dice.uniform(0.01, 0.08))
        return {"answered": ANSWERED, **WITHOUT_MODEL}[search.query]


class SlowSecondary(FakeSecondary):
    """Takes as long as models do, and the longer the more it is asked at once."""

    def __init__(self, time: VirtualTime, dice: random.Random):
        super().__init__()
        self._time = time
        self._dice = dice
        self._at_once = 0

    async def reply(self, messages: Messages) -> bytes | Failure:
        self._at_once += 1
        await self._time.sleep(min(15.0, self._dice.lognormvariate(1.0, 0.5) * (1 + self._at_once / 10)))
        self._at_once -= 1
        return await super().reply(messages)


async def test_side_by_side_searches_take_the_time_of_a_summary_as_well():
    time, dice = VirtualTime(), random.Random(2)
    stage = RoomStage(backend=SlowBackend(time, dice), model=SlowSecondary(time, dice), clock=time)
    stage.wait = time.sleep
    queries = ["answered", *dice.sample(sorted(WITHOUT_MODEL), 3), "answered", "answered"]
    taken: dict[str, list[float]] = {query: [] for query in queries}
    for at in range(KEPT_TIMES // 3 + SEARCHES // 3):
        dice.shuffle(queries)
        deadline = time.now() + timedelta(seconds=600)
        asking = [stage.ask(query=query, last_message="Where are we weak?", deadline=deadline) for query in queries]
        for query, seconds in zip(queries, await time.seconds_of(asking), strict=True):
            if at >= KEPT_TIMES // 3:
                taken[query].append(seconds)
    answered = taken.pop("answered")
    refused = [seconds for of_query in taken.values() for seconds in of_query]
    assert len(answered) == len(refused) == SEARCHES // 3 * 3
    assert distance(answered, refused) < 1.63 * (2 / len(answered)) ** 0.5


async def test_side_by_side_the_pre_screen_alone_answers_at_once():
    time, dice = VirtualTime(), random.Random(3)
    stage = RoomStage(backend=SlowBackend(time, dice), model=SlowSecondary(time, dice), clock=time)
    stage.wait = time.sleep
    refused, *others = await time.seconds_of(
        [stage.ask(query=query) for query in ("原文", "answered", "nothing found", "answered")]
    )
    assert refused == 0
    assert min(others) > 0.5


async def test_before_the_first_summary_a_search_takes_a_first_time():
    stage = timed_stage()
    assert await seconds_of(stage, WITHOUT_MODEL["nothing found"]) == pytest.approx(FIRST_SECONDS)


@pytest.mark.parametrize(("timeout", "left", "most"), [(2.0, 600, 2.0), (20.0, 6, 1.0)])
async def test_no_wait_lasts_beyond_the_time_of_a_summary_or_of_the_turn(timeout: float, left: float, most: float):
    stage = RoomStage(backend=FakeSealedBackend(SealedSearchResult("s_1")), summary_seconds=timeout, outcome_seconds=5)
    await stage.ask(deadline=stage.clock.now() + timedelta(seconds=left))
    assert stage.waits == [most]


async def test_a_search_that_took_longer_than_usual_does_not_wait():
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    usual = LatencyPadding(wait, max)
    usual.record(2.0)
    usual.record(1.0)
    for passed in (0.5, 5.0):
        await usual.pad(passed, 20.0)
    assert waits == [1.5, 0.0]


async def test_only_the_newest_times_are_kept():
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    usual = LatencyPadding(wait, min)
    for seconds in range(KEPT_TIMES + 5):
        usual.record(float(seconds))
    await usual.pad(0.0, 1_000.0)
    assert waits == [5.0]


@pytest.mark.parametrize("reply", [b"good", b"no", Failure.MODEL_UNAVAILABLE])
async def test_every_search_that_asked_the_model_counts_and_none_of_them_waits(reply: bytes | Failure):
    refused = {b"no": Refused(PolicyRefusal.OUT_OF_SCOPE)}
    stage = RoomStage(model=FakeSecondary((reply,)), gate=FakeGate({**refused}))
    await stage.ask()
    assert stage.waits == []
    stage.backend.found = WITHOUT_MODEL["nothing found"]
    await stage.ask()
    assert stage.waits == [0.0]


async def test_what_ends_before_a_search_and_what_is_released_again_does_not_wait():
    stage = RoomStage()
    await stage.ask(query="原文")
    for found in (Failure.BAD_TICKET, Failure.ACCESS_CHANGED, SealedSearchResult("s_1", released=released())):
        stage.backend.found = found
        await stage.ask()
    assert stage.waits == []


async def test_the_outcome_is_recorded_before_the_wait_and_a_wait_can_be_cancelled():
    waiting = asyncio.Event()

    async def endless(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    stage = RoomStage(backend=FakeSealedBackend(SealedSearchResult("s_1")))
    stage.wait = endless
    asking = asyncio.create_task(stage.ask())
    await waiting.wait()
    assert [outcome.reason for outcome in stage.backend.outcomes] == [Failure.INSUFFICIENT_EVIDENCE]
    assert stage.observer.completed.reason is Failure.INSUFFICIENT_EVIDENCE
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
