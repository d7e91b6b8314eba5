"""What model calls cost at the operator's prices, counted and told with each answer."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Self, cast

from prometheus_client import Counter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from chat_shell.models.ports import Model, ModelAnswerEnd, ModelCall, ModelFragment
from shared.models.events import Cost, Usage

COST = Counter("ballast_model_cost_total", "Cost of model calls, in the currency of the list of models", ["model"])
COST_SAVED = Counter(
    "ballast_model_cost_saved_total", "What providers' caches took off the cost of model calls", ["model"]
)

_PRICED_TOKENS = 1_000_000


class Prices(BaseModel):
    """Prices for a million tokens in units of `currency`, which is a code of ISO 4217.

    Where they are not given, input that is read from the cache, or written to it, costs what other input costs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")

    @model_validator(mode="after")
    def _cache_saves(self) -> Self:
        if self.cached_input is not None and self.cached_input > self.input:
            raise ValueError("cached_input: must not be more than input")
        return self


def cost_of(usage: Usage, prices: Prices) -> Cost | None:
    """Return the cost of a call; None where the provider has not reported both input and output."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    write_price = prices.input if prices.cache_write is None else prices.cache_write
    amount = (
        (usage.input_tokens - cached - written) * prices.input
        + cached * cached_price
        + written * write_price
        + usage.output_tokens * prices.output
    )
    saved = cached * (prices.input - cached_price)
    return Cost(currency=prices.currency, amount=_rounded(amount), saved=_rounded(saved))


def _rounded(amount: float) -> float:
    """Return a sum of prices for a million as one for a token, without the noise of binary fractions."""
    return round(amount / _PRICED_TOKENS, 12)


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
