"""Deleting restricted searches that no budget counts any more."""

from backend.restricted.domain.restricted_budget import MONTH
from backend.restricted.ports.restricted import RestrictedLedger
from shared.clock import Clock

FORGET_SEARCHES_SECONDS = 3600.0
"""The pause between two rounds."""


class ForgetSearches:
    """Deletes searches with the chunks they sent, and released results, after 30 days. Audit records stay."""

    def __init__(self, ledger: RestrictedLedger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def forget(self) -> None:
        """Delete once.

        Raises:
            Unavailable: the database is away; rows deleted by then stay deleted.
        """
        await self._ledger.remove_old(self._clock.now() - MONTH)
