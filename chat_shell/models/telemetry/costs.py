"""Count what model calls cost, and tell it with each answer."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import cast

from prometheus_client import Counter

from chat_shell.models.configured.prices import Prices, cost_of
from chat_shell.models.ports import Model, ModelAnswerEnd, ModelCall, ModelFragment

COST = Counter("ballast_model_cost_total", "Cost of model calls, in the currency of the list of models", ["model"])
COST_SAVED = Counter(
    "ballast_model_cost_saved_total", "What providers' caches took off the cost of model calls", ["model"]
)


class PricedModel:
    """Adds to the end of each answer what it cost, and counts it."""

    def __init__(self, model: Model, name: str, prices: Prices) -> None:
        self._model = model
        self._prices = prices
        self._cost = COST.labels(name)
        self._saved = COST_SAVED.labels(name)

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        async with aclosing(cast(AsyncGenerator[ModelFragment], self._model.stream(call, deadline))) as fragments:
            async for fragment in fragments:
                yield self._priced(fragment) if isinstance(fragment, ModelAnswerEnd) else fragment

    def _priced(self, end: ModelAnswerEnd) -> ModelAnswerEnd:
        cost = cost_of(end.usage, self._prices)
        if cost is None:
            return end
        self._cost.inc(cost.amount)
        self._saved.inc(cost.saved)
        return end.model_copy(update={"cost": cost})
