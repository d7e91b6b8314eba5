"""Refusals that are repeated without asking the shared counts: never where these would grant, and within bounds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.identity.domain import Caller, KeyRole, RateLimits
from backend.limits.domain.rates import LimitedParty, PartyUse, RateAnswer, RateDemand, SettledTurns
from backend.limits.memory.rates import MemoryRateStore
from backend.limits.services.known_refusals import (
    LOOK_AGAIN_SECONDS,
    MOST_KNOWN,
    KnownRefusals,
    RefusedCallers,
    refusal_by,
)
from tests.examples import examples
from tests.fakes.clock import FakeClock, Stopwatch

LIMITS = RateLimits(turns_per_minute=3, tokens_per_minute=20, turns_at_once=2)
USED_UP = PartyUse(3, 60, 5, 60, 0, sure_seconds=29.5)
TENANT_USED_UP = USED_UP._replace(turns=5)
ROOM = PartyUse(1, 60, 0, 0, 1)
ALL_PLACES_TAKEN = PartyUse(1, 60, 0, 0, 2)


def demand(lease_id: str = "l", *, key: str = "a", turns: int = 1, begun: int = 1) -> RateDemand:
    own, tenant = LimitedParty(f"key:{key}", LIMITS), LimitedParty("tenant", RateLimits(turns_per_minute=5))
    return RateDemand("default", (own, tenant) if key != "a" else (own,), turns, begun, lease_id)


def said(*uses: PartyUse) -> RateAnswer:
    return RateAnswer(False, 30, uses)


def test_an_answer_that_comes_late_does_not_take_the_place_of_one_that_was_asked_for_after_it() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    late = known.note_asking(demand())
    watch.seconds += 10
    known.note_asking(demand())(said(USED_UP))
    late(said(USED_UP._replace(sure_seconds=12)))
    refused = known.repeat(demand())
    assert refused is not None
    assert refused.error.retry_after_seconds == 30


def test_a_refusal_is_repeated_with_what_is_left_of_its_wait_until_it_is_no_longer_sure() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.note_asking(demand())(said(USED_UP))
    watch.seconds += 0.9
    repeated = known.repeat(demand())
    assert repeated is not None
    assert not known.must_ask(demand())
    assert repeated.error.message.startswith("This key may begin 3 turns")
    assert repeated.error.retry_after_seconds == 29
    assert repeated.ran_out == "default/key:a"
    watch.seconds += 28.5
    known.note_asking(demand())(said(USED_UP._replace(sure_seconds=0.1)))
    assert known.repeat(demand()) is not None
    watch.seconds += 0.11
    assert known.repeat(demand()) is None
    assert known.must_ask(demand())


def test_how_long_it_is_sure_counts_from_before_the_counts_were_asked() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    note = known.note_asking(demand())
    watch.seconds += 29.6
    note(said(USED_UP))
    assert known.repeat(demand()) is None


def test_the_headers_tell_what_is_left_of_the_minute() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.note_asking(demand())(said(USED_UP))
    watch.seconds += 0.99
    first = known.repeat(demand())
    watch.seconds += 0.02
    later = known.repeat(demand())
    assert first is not None
    assert later is not None
    assert first.headers["x-ratelimit-reset-requests"] == "1m0s"
    assert later.headers["x-ratelimit-reset-requests"] == "59s"
    assert later.headers["x-ratelimit-remaining-requests"] == "0"
    assert later.headers["x-ratelimit-remaining-tokens"] == "15"


def test_the_counts_are_asked_once_a_second_however_many_ask_here() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    known.note_asking(demand())(said(USED_UP))
    asked = 0
    for _ in range(40):
        watch.seconds += LOOK_AGAIN_SECONDS / 10
        asked += sum(known.must_ask(demand()) for _ in range(50))
    assert asked == 4


def test_every_key_of_a_tenant_is_refused_for_what_the_tenant_has_used_up() -> None:
    known = KnownRefusals(Stopwatch())
    known.note_asking(demand(key="b"))(said(ROOM, TENANT_USED_UP))
    for key in "bcd":
        repeated = known.repeat(demand(key=key))
        assert repeated is not None
        assert repeated.error.message.startswith("This tenant may begin 5 turns")
        assert repeated.ran_out == "default/tenant"
    assert known.repeat(demand(key="d")._replace(tenant="other")) is None


def test_what_one_key_has_used_up_is_none_of_its_tenant() -> None:
    known = KnownRefusals(Stopwatch())
    known.note_asking(demand(key="b"))(said(USED_UP, ROOM))
    assert known.repeat(demand(key="b")) is not None
    assert known.repeat(demand(key="c")) is None
    assert not known.must_ask(demand(key="c"))


def test_a_key_that_is_not_known_yet_is_asked_for_once_so_that_its_headers_tell_of_it() -> None:
    known = KnownRefusals(Stopwatch())
    known.note_asking(demand(key="b"))(said(ROOM, TENANT_USED_UP))
    assert (known.must_ask(demand(key="b")), known.must_ask(demand(key="c"))) == (False, True)
    known.note_asking(demand(key="c"))(said(ROOM, TENANT_USED_UP))
    assert not known.must_ask(demand(key="c"))


def test_who_has_all_their_turns_running_is_asked_for_each_time_until_there_is_room() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    assert not known.must_ask(demand())
    full = said(ALL_PLACES_TAKEN)
    known.note_asking(demand())(full)
    assert [known.must_ask(demand()) for _ in range(3)] == [True] * 3
    assert known.repeat(demand()) is None  # another replica may have ended one of them
    refusal = refusal_by(demand(), full)
    assert refusal is not None
    assert refusal.error.message.startswith("This key may have 2 turns running")
    assert refusal.error.retry_after_seconds == 1
    watch.seconds += 0.1
    known.note_asking(demand())(said(ROOM))
    assert not known.must_ask(demand())


def test_an_answer_without_a_refusal_and_counts_that_are_away_end_what_was_sure() -> None:
    for later in (said(ROOM), None):
        watch = Stopwatch()
        known = KnownRefusals(watch)
        known.note_asking(demand())(said(USED_UP))
        watch.seconds += 0.5
        known.note_asking(demand())(later)
        assert known.repeat(demand()) is None
        assert not known.must_ask(demand())


def test_an_answer_that_was_asked_for_before_the_refusal_says_nothing() -> None:
    watch = Stopwatch()
    known = KnownRefusals(watch)
    older = known.note_asking(demand())
    watch.seconds += 0.1
    known.note_asking(demand())(said(USED_UP))
    older(said(ROOM))
    assert known.repeat(demand()) is not None


STEPS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from("abc"), st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 0), (0, 0)])),
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
            await store.settle([SettledTurns(held.pop(what % len(held)), amounts)])
        elif step == "ask":
            asked = demand(f"l{number}", key=what, turns=amounts[0], begun=amounts[1])
            note = known.note_asking(asked)
            answer = await store.take(asked)
            note(answer)
            if answer.is_granted and amounts[0]:
                held.append(asked)
        for key in "abc":
            looked = await store.take(demand("", key=key, turns=0, begun=0))
            by_counts = refusal_by(demand(key=key), looked) is not None
            if by_counts or known.repeat(demand(key=key)) is not None:
                assert not (await store.take(demand(f"other-{number}", key=key))).is_granted


def test_only_so_much_is_known() -> None:
    callers = RefusedCallers(Stopwatch())
    caller = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
    for number in range(MOST_KNOWN + 1):
        callers.note(str(number).encode(), caller)
    assert (callers.find(b"0"), callers.find(b"1")) == (None, caller)


def test_whom_a_key_names_is_looked_up_again_after_a_second() -> None:
    watch = Stopwatch()
    callers = RefusedCallers(watch)
    caller = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
    callers.note(b"a", caller)
    watch.seconds += 0.9 * LOOK_AGAIN_SECONDS
    assert callers.find(b"a") is caller
    watch.seconds += 0.1 * LOOK_AGAIN_SECONDS
    assert callers.find(b"a") is None
