"""The length of a quiet stream is that of the streams before it, so that it tells no topic from another."""

import random

import pytest

from backend.turns.domain.quiet_pace import QuietPace

SHORTEST = 32


def auc(first: list[int], second: list[int]) -> float:
    """Return how often a stream of the second topic takes longer, ties counted half."""
    told = sum((high > low) + (high == low) / 2 for high in second for low in first)
    return told / (len(first) * len(second))


@pytest.mark.parametrize("busy", [0, 8, 12, 16, 20, 24, 40])
def test_what_slows_all_streams_tells_no_long_answer_from_a_short_one(busy: int) -> None:
    dice, pace = random.Random(busy), QuietPace(3.2)
    needed: tuple[list[int], list[int]] = ([], [])
    taken: tuple[list[int], list[int]] = ([], [])
    alone: tuple[list[int], list[int]] = ([], [])
    for _ in range(2_000):
        topic = dice.randrange(2)
        steps = dice.randint(4, 12) + topic * dice.randint(4, 16) + dice.randint(0, busy)
        needed[topic].append(steps)
        taken[topic].append(pace.round_up(steps, SHORTEST))
        alone[topic].append(QuietPace(3.2).round_up(steps, SHORTEST))
        assert taken[topic][-1] >= steps
    assert auc(*needed) > 0.55
    assert auc(*taken) <= 0.55
    assert auc(*alone) > 0.6 or not 16 < busy < 40  # what a stream by itself would tell


def test_a_very_long_answer_slows_others_four_times_and_not_for_ever() -> None:
    pace = QuietPace(3.2)
    assert pace.round_up(1, SHORTEST) == SHORTEST
    assert pace.round_up(1_000, SHORTEST) == 32 * SHORTEST
    assert [pace.round_up(1, SHORTEST) for _ in range(33)] == [4 * SHORTEST] * 32 + [SHORTEST]
