"""Retries of calls to a model's provider: when a call is sent again, and how long the provider asks to wait before."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from shared.errors import ModelError, ModelRateLimited, ModelUnavailable

_T = TypeVar("_T")

MAX_RETRY_AFTER_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a model call is sent again: only before its first fragment, and with the same bytes.

    The wait doubles and is spread over half to one and a half of itself, so that turns that failed
    together do not come back together; `jitter` draws from [0, 1). A provider's own `retry-after` is obeyed
    up to the longest wait. `on_retry` is told of the model whose call is sent again.
    """

    jitter: Callable[[], float]
    max_retries: int = 2
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 5.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    on_retry: Callable[[str], None] | None = None

    def wait_seconds(self, error: ModelError, retries: int) -> float | None:
        """Return how long to wait before the next attempt, or None when there shall be none."""
        if retries >= self.max_retries or not isinstance(error, ModelUnavailable | ModelRateLimited):
            return None
        asked_seconds = error.retry_after_seconds or 0.0
        if asked_seconds > self.longest_wait_seconds:
            return None
        return max(asked_seconds, self.first_wait_seconds * 2**retries * (0.5 + self.jitter()))

    async def repeat(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Make a call until it succeeds, or fails in a way that shall not be tried again."""
        retries = 0
        while True:
            try:
                return await call()
            except ModelError as error:
                wait_seconds = self.wait_seconds(error, retries)
                if wait_seconds is None:
                    raise
            await self.sleep(wait_seconds)
            retries += 1

    async def wait(self, model: str, seconds: float) -> None:
        """Tell that a call of the model is sent again, and wait before that."""
        if self.on_retry is not None:
            self.on_retry(model)
        await self.sleep(seconds)


def retry_after_seconds(headers: dict[str, str], now: datetime) -> float | None:
    """Return the time to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date (RFC 9110, 10.2.3).

    It is limited to one day, and None where both are absent or cannot be read. Header names are in lower case.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        return min(seconds / 1000, MAX_RETRY_AFTER_SECONDS)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value is not None:
        seconds = _seconds_until(value, now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_SECONDS)


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and re.fullmatch(r"\d{1,12}(\.\d{1,9})?", value.strip()) else None


def _seconds_until(value: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment - now).total_seconds()) if moment.tzinfo is not None else None
