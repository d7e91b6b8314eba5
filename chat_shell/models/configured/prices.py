"""The cost of model calls at the operator's prices."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.models.events import Cost, Usage

_PRICED_TOKENS = 1_000_000


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
