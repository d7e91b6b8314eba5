"""A short simulation, its determinism, and the faults that it has to find."""

import gc
from collections.abc import Generator

import pytest

from tests.simulation.mends import without
from tests.simulation.run import SECONDS, simulate

SHORT_SECONDS = 240.0
FEW_SEEDS = (2, 3)
FOUND_BY = {
    "a lease renewed without its fence": (6, SHORT_SECONDS, "fence"),
    "an event numbered twice": (1, SHORT_SECONDS, "numbers"),
    "deleted queued response": (1, SHORT_SECONDS, "end of stream"),
    "lost events": (10, SECONDS, "stored"),
    "frozen chat_shell": (28, SECONDS, "silence"),
    "lost second": (170, SECONDS, "ended"),
}
"""A seed that finds each fault within some simulated time, and the check that it breaks."""


@pytest.fixture(autouse=True)
def _without_collections() -> Generator[None]:
    """Look for cycles behind a simulation, and not while it holds all of its processes."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_few_seeds_break_no_promise() -> None:
    for seed in FEW_SEEDS:
        outcome = simulate(seed, SHORT_SECONDS)
        assert outcome.violations == ()
        assert "completed" in outcome.statuses


def test_the_same_seed_tells_the_same_history() -> None:
    first, again, other = (simulate(seed, SHORT_SECONDS) for seed in (7, 7, 8))
    assert "\n".join(first.history).encode() == "\n".join(again.history).encode()
    assert first.history != other.history


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_what_is_wrong_and_is_clean_without_it(name: str) -> None:
    seed, seconds, check = FOUND_BY[name]
    assert simulate(seed, seconds).violations == ()
    with without(name):
        found = simulate(seed, seconds)
    assert check in {violation.check for violation in found.violations}
