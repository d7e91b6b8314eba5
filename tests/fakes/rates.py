"""Limits of turns that count nothing, and what hears of refusals."""

from backend.limits.memory.rates import MemoryRateStore
from backend.limits.services.turn_rates import TurnRates
from tests.fakes.clock import FakeClock


class CountedRefusals:
    """Implements `RateObserver`."""

    def __init__(self) -> None:
        self.refused = 0
        self.uncounted = 0

    def turns_refused(self, turns: int) -> None:
        self.refused += turns

    def turns_uncounted(self, turns: int) -> None:
        self.uncounted += turns


def unlimited_rates() -> TurnRates:
    """Return rates of keys and tenants without limits."""
    return TurnRates(MemoryRateStore(FakeClock()), CountedRefusals())
