"""The bars of the bench, over conversations that differ from run to run."""

import random

from tests.bench.cache.generator import Scale, conversation
from tests.bench.cache.layouts import BASELINES, DURABLE
from tests.bench.cache.measuring import BASELINE_NAMES, Measured, Share, measured, missed_bars, totals
from tests.bench.cache.rendering import render_bars, render_table
from tests.bench.cache.simulators import SIMULATORS
from tests.examples import of_many

CONVERSATIONS = of_many(200, few=20)
MIDDLE = Scale(
    turns=8, steps=2, side_by_side=3, instructions=6_000, words=800, result=1_500, summary=400, file=6_000, bases=5,
    small_window_tokens=14_000,
)  # fmt: skip


def test_the_bars_are_met():
    first_seed = random.SystemRandom().randrange(10**9)
    results = [measured(conversation(seed, MIDDLE)) for seed in range(first_seed, first_seed + CONVERSATIONS)]

    assert missed_bars(results) == []
    assert sum(bool(result.resets) for result in results) < CONVERSATIONS / 2
    assert "durable" in render_table(totals(result.shares for result in results))


def shares(own: float, other: float) -> dict[tuple[str, str], Share]:
    return {
        (simulator, layout): Share(round(1_000 * (own if layout == DURABLE.name else other)), 1_000)
        for simulator in SIMULATORS
        for layout in (DURABLE.name, "tail", *BASELINE_NAMES)
    }


def result(own: float, other: float, *, narrows_access: bool = False) -> Measured:
    at_resets = dict.fromkeys(shares(own, other), Share())
    return Measured(1, (), narrows_access=narrows_access, shares=shares(own, other), at_resets=at_resets)


def test_a_missed_bar_is_told():
    assert len(missed_bars([result(0.98, 0.5)])) == len(SIMULATORS)
    assert len(missed_bars([result(0.995, 0.999)])) == 2 * len(SIMULATORS) * len(BASELINES)
    assert missed_bars([result(0.995, 0.999, narrows_access=True)]) == []


def test_only_a_reset_lowers_durable():
    played = measured(conversation(0, MIDDLE))
    key = "whole unit", DURABLE.name

    assert bool(played.resets) == (played.shares[key].value < 1)
    assert played.within_epochs("whole unit", DURABLE) == 1


def test_a_plot_of_characters():
    text = render_bars(shares(1.0, 0.5))

    assert f"durable                          |{'#' * 50}| 1.000" in text
    assert f"tail                             |{'#' * 25}{'.' * 25}| 0.500" in text
