"""Refusals that are repeated without asking the shared counts: never where these would grant, and within bounds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.identity.domain import Caller, KeyRole, RateLimits
from backend.turns.domain.rates import LimitedParty, PartyUse, RateAnswer, RateDemand, SettledTurns
from backend.turns.memory.rates import MemoryRateStore
from backend.turns.services.known_refusals import (
    LONGEST_DELAY_SECONDS,
    LOOK_AGAIN_SECONDS,
    MOST_KNOWN,
    REFUSALS_A_SECOND,
    REFUSALS_AT_ONCE,
    KnownRefusals,
    RefusedCallers,
)
from tests.examples import examples
from tests.fakes.clock import FakeClock

LIMITS = RateLimits(turns_per_minute=3, tokens_per_minute=20, turns_at_once=2)
USED_UP = RateAnswer(False, 30, (PartyUse(3, 60, 5, 60, 0),), 29.5)
GRANTED = RateAnswer(True, 0, (PartyUse(1, 60, 0, 0, 1),))
ALL_PLACES_TAKEN = RateAnswer(False, 1, (PartyUse(1, 60, 0, 0, 2),))


class Stopwatch:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def demand(lease_id: str = "l", *, key: str = "a", turns: int = 1, begun: int = 1) -> RateDemand:
    own, tenant = LimitedParty(f"key:{key}", LIMITS), LimitedParty("tenant", RateLimits(turns_per_minute=5))
    return RateDemand("default", (own, tenant) if key != "a" else (own,), turns, begun, lease_id)


def test_a_refusal_is_repeated_with_what_is_left_of_its_wait_until_it_is_no_longer_sure() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.asked(demand())(USED_UP)
    watch.seconds += 0.9
    repeated = known.repeated(demand())
    assert repeated is not None
    assert repeated.error.message == "This key may begin 3 turns a minute, and has begun 3."
    assert repeated.error.retry_after_seconds == 29
    watch.seconds += 28.5
    known.asked(demand())(USED_UP._replace(sure_seconds=0.1, wait_seconds=1))
    assert known.repeated(demand()) is not None
    watch.seconds += 0.1
    assert known.repeated(demand()) is None


def test_how_long_it_is_sure_counts_from_before_the_counts_were_asked() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    note = known.asked(demand())
    watch.seconds += 29.6
    note(USED_UP)
    assert known.repeated(demand()) is None


def test_the_headers_tell_what_is_left_of_the_minute() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.asked(demand())(USED_UP)
    watch.seconds += 0.99
    first = known.repeated(demand())
    watch.seconds += 0.02
    assert known.repeated(demand()) is None
    later = known.repeated(demand())
    assert first is not None
    assert later is not None
    told = [each.headers["x-ratelimit-reset-requests"] for each in (first, later)]
    assert told == ["1m0s", "59s"]
    assert later.headers["x-ratelimit-remaining-requests"] == "0"
    assert later.headers["x-ratelimit-remaining-tokens"] == "15"


def test_one_request_a_second_goes_the_whole_way() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.asked(demand())(USED_UP)
    passed = 0
    for _ in range(40):
        watch.seconds += LOOK_AGAIN_SECONDS / 10
        passed += sum(known.repeated(demand()) is None for _ in range(50))
    assert passed == 4


def test_who_has_all_his_turns_running_here_is_refused_here_until_one_of_them_ends() -> None:
    known = KnownRefusals(Stopwatch())
    known.asked(demand())(ALL_PLACES_TAKEN)
    assert known.repeated(demand()) is None  # as far as this process knows, another one may have ended its turns
    known.begun(demand())
    known.begun(demand())
    repeated = known.repeated(demand())
    assert repeated is not None
    assert repeated.error.message == "This key may have 2 turns running at a time, and has 2."
    assert repeated.error.retry_after_seconds == 1
    known.ended(demand())
    assert known.repeated(demand()) is None


def test_a_grant_and_counts_that_are_away_end_what_was_sure() -> None:
    for later in (GRANTED, None):
        watch = Stopwatch()
        known = KnownRefusals(watch)
        known.asked(demand())(USED_UP)
        older = known.asked(demand())
        assert known.repeated(demand()) is not None
        watch.seconds += 0.5
        known.asked(demand())(later)
        assert known.repeated(demand()) is None
        older(GRANTED)


def test_a_grant_that_was_asked_for_before_the_refusal_says_nothing() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    older = known.asked(demand())
    watch.seconds += 0.1
    known.asked(demand())(USED_UP)
    older(GRANTED)
    assert known.repeated(demand()) is not None


STEPS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from("abc"), st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 0)])),
    st.tuples(st.just("end"), st.integers(0, 9), st.integers(0, 15)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.3, 1.0, 7.7, 30.0, 59.9]), st.none()),
)


@given(steps=st.lists(STEPS, max_size=60))
@examples(1000)
async def test_whatever_happens_nothing_is_refused_here_that_the_shared_counts_would_grant(
    steps: list[tuple[str, Any, Any]],
) -> None:
    clock, watch = FakeClock(), Stopwatch()
    store, known = MemoryRateStore(clock), KnownRefusals(watch)
    held: list[RateDemand] = []
    for number, (step, what, amounts) in enumerate(steps):
        if step == "wait":
            clock.advance(what)
            watch.seconds += what
        elif step == "end" and held:
            ended = held.pop(what % len(held))
            known.ended(ended)
            await store.settle([SettledTurns(ended, amounts)])
        elif step == "ask":
            asked = demand(f"l{number}", key=what, turns=amounts[0], begun=amounts[1])
            note = known.asked(asked)
            answer = await store.take(asked)
            note(answer)
            if answer.is_granted:
                held.append(asked)
                known.begun(asked)
        for key in "abc":
            if known.repeated(demand(key=key)) is not None:
                assert not (await store.take(demand(f"other-{number}", key=key))).is_granted


def test_only_so_much_is_known() -> None:
    callers = RefusedCallers(Stopwatch())
    caller = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
    for number in range(MOST_KNOWN + 1):
        callers.note(str(number).encode(), caller)
    assert (callers.find(b"0"), callers.find(b"1")) == (None, caller)


def test_refusals_of_a_key_leave_at_a_bounded_rate_and_none_waits_for_ever() -> None:
    watch = Stopwatch()
    callers = RefusedCallers(watch)
    delays = [callers.delay_seconds("a") for _ in range(REFUSALS_AT_ONCE + REFUSALS_A_SECOND + 1)]
    assert delays[:REFUSALS_AT_ONCE] == [0.0] * REFUSALS_AT_ONCE
    assert round(delays[-1], 6) == 1.0
    assert callers.delay_seconds("b") == 0.0
    assert max(callers.delay_seconds("a") for _ in range(1000)) == LONGEST_DELAY_SECONDS
    watch.seconds += 2 * LONGEST_DELAY_SECONDS
    assert callers.delay_seconds("a") == 0.0
