"""Count what model calls cost, and tell it with each answer."""

from collections.abc import Generator
from contextlib import contextmanager

from prometheus_client import Counter

from chat_shell.models.configured.prices import Prices, cost_of
from chat_shell.models.ports import ModelAnswerEnd, ModelCall
from chat_shell.models.transport.observing import CallHooks

COST = Counter("ballast_model_cost_total", "Cost of model calls, in the currency of the list of models", ["model"])
COST_SAVED = Counter(
    "ballast_model_cost_saved_total", "What providers' caches took off the cost of model calls", ["model"]
)


class CallPricer:
    """Adds to the end of each answer what it cost, and counts it."""

    def __init__(self, name: str, prices: Prices) -> None:
        self._prices = prices
        self._cost = COST.labels(name)
        self._saved = COST_SAVED.labels(name)

    @contextmanager
    def observe(self, _call: ModelCall) -> Generator[CallHooks]:
        """Price a call."""
        yield CallHooks(on_end=self._price)

    def _price(self, end: ModelAnswerEnd) -> ModelAnswerEnd:
        cost = cost_of(end.usage, self._prices)
        if cost is None:
            return end
        self._cost.inc(cost.amount)
        self._saved.inc(cost.saved)
        return end.model_copy(update={"cost": cost})
