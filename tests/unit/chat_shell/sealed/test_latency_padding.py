"""The time of a search tells nothing: answered, blocked and without a model call, all take equally long."""

import asyncio
import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from chat_shell.sealed.outcome import SealedSearch, SealedSearchResult
from chat_shell.sealed.room import FIRST_SECONDS, KEPT_TIMES, LatencyPadding
from chat_shell.sealed.summary_prompt import Messages
from shared.models.safe_summary import Failure, SummaryVersions
from shared.models.values import JsonObject
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import FakeSealedBackend, FakeSecondary, RoomStage, protected_chunk
from tests.fakes.virtual_time import VirtualTime

SEARCHES = 200
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

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes | Failure:
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


def auc(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how well times tell two outcomes apart: 0.5 is not at all, 1 always."""
    ordered = sorted(first)
    ranks = [(bisect_left(ordered, at) + bisect_right(ordered, at)) / 2 for at in second]
    told = sum(ranks) / (len(first) * len(second))
    return max(told, 1 - told)


BLOCKED = "blocked"
OUTCOMES = {"answered": ANSWERED, BLOCKED: ANSWERED, **WITHOUT_MODEL}


@pytest.mark.parametrize("seed", first_of(1, 2, 3))
async def test_the_times_of_what_is_answered_blocked_and_not_found_cannot_be_told_apart(seed: int):
    stage, dice = timed_stage(seed), random.Random(seed)
    taken: dict[str, list[float]] = {outcome: [] for outcome in OUTCOMES}
    unpadded: dict[str, list[float]] = {outcome: [] for outcome in OUTCOMES}
    for at in range(KEPT_TIMES // len(OUTCOMES) + SEARCHES):
        for outcome in dice.sample(sorted(OUTCOMES), len(OUTCOMES)):
            stage.model.replies = (b"bad",) if outcome == BLOCKED else (b"good",)
            seconds = await seconds_of(stage, OUTCOMES[outcome])
            if at >= KEPT_TIMES // len(OUTCOMES):
                taken[outcome].append(seconds)
                unpadded[outcome].append(seconds - stage.waits[-1])
    measured = {pair: auc(taken[pair[0]], taken[pair[1]]) for pair in combinations(OUTCOMES, 2)}
    assert max(measured.values()) <= 0.55, measured
    assert auc(unpadded["answered"], unpadded[BLOCKED]) > 0.8
    assert auc(unpadded["answered"], unpadded["nothing found"]) > 0.99


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

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes | Failure:
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
    assert auc(answered, refused) <= 0.55


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


async def test_a_search_takes_as_long_as_two_calls_and_no_longer_where_it_has_taken_more():
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    padding = LatencyPadding(wait)
    await padding.pad(1.0, 20.0, calls=1)
    await padding.pad(4.0, 20.0, calls=2)
    await padding.pad(0.5, 20.0)
    await padding.pad(5.0, 20.0)
    assert waits == [1.0, 0.0, 2.5, 0.0]


async def test_only_the_newest_times_are_kept():
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    padding = LatencyPadding(wait)
    for seconds in (100.0, *[1.0] * KEPT_TIMES):
        await padding.pad(seconds, 1_000.0, calls=1)
    await padding.pad(0.0, 1_000.0)
    assert waits[-1] == 2.0


@pytest.mark.parametrize("failed", [Failure.MODEL_UNAVAILABLE, Failure.TIMEOUT])
async def test_calls_that_fail_wait_and_make_no_other_search_faster(failed: Failure):
    stage = RoomStage(model=FakeSecondary((failed,)))
    await stage.ask()
    stage.backend.found = WITHOUT_MODEL["nothing found"]
    await stage.ask()
    assert stage.waits == [FIRST_SECONDS, FIRST_SECONDS]


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
