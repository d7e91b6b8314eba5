"""Forgetting restricted searches that count no more."""

from backend.foundation.services.supervision import repeat_forever
from backend.restricted.domain.restricted_budget import MONTH
from backend.restricted.ports.restricted import RestrictedLedger
from shared.clock import Clock

SECONDS_BETWEEN = 3600.0


class ForgetSearches:
    """Removes what is older than the longest budget: searches, what they sent, kept results. The audit stays."""

    def __init__(self, ledger: RestrictedLedger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def keep_forgetting(self) -> None:
        """Forget until cancelled, the first time at once; while the database is away, later."""
        await repeat_forever(self.forget, SECONDS_BETWEEN)

    async def forget(self) -> None:
        """Forget once.

        Raises:
            Unavailable: the database is away; what was removed by then stays removed.
        """
        await self._ledger.remove_old(self._clock.now() - MONTH)
