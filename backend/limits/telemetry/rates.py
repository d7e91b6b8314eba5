"""The Prometheus metrics of limits."""

from prometheus_client import Counter

TURNS_REFUSED = Counter("ballast_rate_limited_turns_total", "Turns refused because a limit of key or tenant is reached")
TURNS_UNCOUNTED = Counter(
    "ballast_rate_limit_uncounted_total", "Turns let through without counting them: the store of counts was away"
)


class CountingRateObserver:
    """Implements `backend.limits.services.turn_rates.RateObserver`."""

    def turns_refused(self, turns: int) -> None:
        """Count them."""
        TURNS_REFUSED.inc(turns)

    def turns_uncounted(self, turns: int) -> None:
        """Count them."""
        TURNS_UNCOUNTED.inc(turns)
