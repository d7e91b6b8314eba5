from collections.abc import Callable

from shared.wakeup_batcher import ROUND_SECONDS, WakeupBatcher


class HandTimer:
    """A timer whose clock moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None], /) -> object:
        self.calls.append((when, callback))
        return None

    def go_on(self, seconds: float) -> None:
        end = self.now + seconds
        for when, callback in sorted(self.calls, key=lambda call: call[0]):
            if when <= end:
                self.calls.remove((when, callback))
                self.now = when
                callback()
        self.now = end


def test_a_lone_stream_waits_for_nothing():
    timer, seen = HandTimer(), list[float]()
    rounds = WakeupBatcher(timer=timer)
    for _ in range(3):
        rounds.join(lambda: seen.append(timer.now))
        timer.go_on(ROUND_SECONDS)
    assert seen == [100.0, 100.0 + ROUND_SECONDS, 100.0 + 2 * ROUND_SECONDS]


def test_all_that_come_between_two_rounds_go_in_one_and_none_waits_longer_than_a_round():
    timer, seen = HandTimer(), list[tuple[str, float]]()
    rounds = WakeupBatcher(timer=timer)
    rounds.join(lambda: seen.append(("leads", timer.now)))
    timer.go_on(0.001)
    rounds.join(lambda: seen.append(("one", timer.now)))
    timer.go_on(0.005)
    rounds.join(lambda: seen.append(("other", timer.now)))
    assert seen == [("leads", 100.0)]
    assert len(timer.calls) == 1
    timer.go_on(ROUND_SECONDS)
    assert seen[1:] == [("one", 100.0 + ROUND_SECONDS), ("other", 100.0 + ROUND_SECONDS)]


def test_who_joins_twice_is_called_once():
    timer, seen = HandTimer(), list[int]()
    rounds = WakeupBatcher(timer=timer)
    rounds.join(lambda: None)

    def act() -> None:
        seen.append(1)

    rounds.join(act)
    rounds.join(act)
    timer.go_on(ROUND_SECONDS)
    assert seen == [1]
    assert ROUND_SECONDS <= 0.02
