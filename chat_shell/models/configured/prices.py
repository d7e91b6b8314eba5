"""The cost of model calls at the operator's prices."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.models.events import CacheRule, Cost, Usage

_PRICED_TOKENS = 1_000_000

MOST_TOKENS = 1_000_000_000
"""No model's window is near it, and sums of it stay numbers that every protocol carries."""

HIGHEST_PRICE = 1_000_000_000
"""Of a currency's units for a million tokens: what is more is a typing error, or would end in an infinite sum."""


class Prices(BaseModel):
    """Prices for a million tokens in units of `currency`, which is a code of ISO 4217.

    Where they are not given, input that is read from the cache, or written to it, costs what other input costs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0, le=HIGHEST_PRICE)
    output: float = Field(ge=0, le=HIGHEST_PRICE)
    cached_input: float | None = Field(default=None, ge=0, le=HIGHEST_PRICE)
    cache_write: float | None = Field(default=None, ge=0, le=HIGHEST_PRICE)
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")

    @model_validator(mode="after")
    def _cache_saves(self) -> Self:
        if self.cached_input is not None and self.cached_input > self.input:
            raise ValueError("cached_input: must not be more than input")
        return self

    @property
    def cached_price(self) -> float:
        """What input costs that is read from the cache."""
        return self.input if self.cached_input is None else self.cached_input

    def with_cache(self, rule: CacheRule | None) -> Self:
        """Return the prices with those of reading and writing the cache, where they are not given, by its rule."""
        if rule is None:
            return self
        usual = {"cached_input": self.input * rule.read_factor, "cache_write": self.input * rule.write_factor}
        return self.model_copy(update={name: price for name, price in usual.items() if getattr(self, name) is None})


def full_prices(prices: Prices | None, rule: CacheRule | None) -> Prices | None:
    """Return prices with those of the cache by its rule; None where there are none."""
    return None if prices is None else prices.with_cache(rule)


class CompactWhen(BaseModel):
    """What the input of a turn may cost where the cache has it, in the currency of the prices, before history goes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input_cost_per_turn: float = Field(gt=0, le=HIGHEST_PRICE)

    def check(self, prices: Prices | None) -> None:
        """Raise ValueError, which names what is missing, where no number of tokens would cost that much."""
        if prices is None:
            raise ValueError("input_cost_per_turn: needs prices")
        if not prices.cached_price:
            raise ValueError("input_cost_per_turn: needs a price of cached_input above 0")

    def tokens_at(self, prices: Prices) -> int:
        """Return how many tokens cost that much."""
        return max(1, min(MOST_TOKENS, int(self.input_cost_per_turn * _PRICED_TOKENS / prices.cached_price)))


def cost_of(usage: Usage, prices: Prices) -> Cost | None:
    """Return the cost of a call; None where the provider has not reported both input and output."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
    cached_price = prices.cached_price
    write_price = prices.input if prices.cache_write is None else prices.cache_write
    amount = (
        (usage.input_tokens - cached - written) * prices.input
        + cached * cached_price
        + written * write_price
        + usage.output_tokens * prices.output
    )
    saved = cached * (prices.input - cached_price)
    return Cost(currency=prices.currency, amount=_round(amount), saved=_round(saved))


def _round(amount: float) -> float:
    """Return a sum of prices for a million as one for a token, without the noise of binary fractions."""
    return round(amount / _PRICED_TOKENS, 12)
