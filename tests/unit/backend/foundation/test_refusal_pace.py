"""How fast refusals leave."""

from backend.foundation.services.refusal_pace import (
    LONGEST_DELAY_SECONDS,
    MOST_PACED,
    REFUSALS_A_SECOND,
    REFUSALS_AT_ONCE,
    RefusalPace,
)


class Stopwatch:
    """Seconds that pass when a test says so."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_refusals_for_a_reason_leave_at_a_bounded_rate_and_none_waits_for_ever() -> None:
    watch = Stopwatch()
    pace = RefusalPace(watch)
    delays = [pace.delay_seconds("a") for _ in range(REFUSALS_AT_ONCE + REFUSALS_A_SECOND + 1)]
    assert delays[:REFUSALS_AT_ONCE] == [0.0] * REFUSALS_AT_ONCE
    assert round(delays[-1], 6) == 1.0
    assert pace.delay_seconds("b") == 0.0
    assert max(pace.delay_seconds("a") for _ in range(1000)) == LONGEST_DELAY_SECONDS
    watch.seconds += 2 * LONGEST_DELAY_SECONDS
    assert pace.delay_seconds("a") == 0.0


def test_only_so_many_reasons_are_kept() -> None:
    pace = RefusalPace(Stopwatch())
    held_back = [pace.delay_seconds("first") for _ in range(REFUSALS_AT_ONCE + 2)][-1]
    for number in range(MOST_PACED):
        pace.delay_seconds(str(number))
    assert (held_back > 0, pace.delay_seconds("first")) == (True, 0.0)
