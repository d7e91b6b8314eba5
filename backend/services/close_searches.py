"""Closing restricted searches whose outcome never came: turns that were stopped, processes that were killed."""

import asyncio
from contextlib import suppress
from datetime import timedelta

from backend.ports.identity import Clock
from backend.ports.restricted import RestrictedLedger
from backend.services.restricted_audit import RestrictedAudit
from shared.errors import Unavailable

SECONDS_BETWEEN = 60.0
GRACE = timedelta(minutes=1)
"""Behind a turn's deadline, by which its ticket has expired: nothing can be reported any more."""


class CloseSearches:
    """Writes down, as refused, what was charged and not reported within a turn's time: no search is without record."""

    def __init__(self, ledger: RestrictedLedger, audit: RestrictedAudit, clock: Clock, turn_time: timedelta) -> None:
        self._ledger = ledger
        self._audit = audit
        self._clock = clock
        self._patience = turn_time + GRACE

    async def keep_closing(self) -> None:
        """Close until cancelled, the first time at once; while the database is away, later."""
        while True:
            with suppress(Unavailable):
                await self.close()
            await asyncio.sleep(SECONDS_BETWEEN)

    async def close(self) -> None:
        """Close what is overdue. An outcome that another replica takes in the same moment stands.

        Raises:
            Unavailable: the database is away; what was closed by then stays closed.
        """
        before = self._clock.now() - self._patience
        while overdue := await self._ledger.unreported(before):
            for charged in overdue:
                await self._audit.abandon(charged)
