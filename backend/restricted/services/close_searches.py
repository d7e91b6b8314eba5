"""Closing restricted searches whose outcome never came: turns that were stopped, processes that were killed."""

from datetime import timedelta

from backend.foundation.services.supervision import repeat_forever, result_or_error
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.restricted_audit import RestrictedAudit
from shared.clock import Clock
from shared.errors import Unavailable

SECONDS_BETWEEN = 60.0
CLOSED_PER_ROUND = 1_000
GRACE = timedelta(minutes=1)
"""Longer than a turn may take: the ticket of a search that is so old has expired, and nothing can be reported of it."""


class CloseSearches:
    """Writes down, as refused, what was charged and not reported within a turn's time: no search is without record."""

    def __init__(
        self,
        ledger: RestrictedLedger,
        audit: RestrictedAudit,
        clock: Clock,
        turn_time: timedelta,
        *,
        seconds_between: float = SECONDS_BETWEEN,
        per_round: int = CLOSED_PER_ROUND,
    ) -> None:
        self._ledger = ledger
        self._audit = audit
        self._clock = clock
        self._patience = turn_time + GRACE
        self._seconds_between = seconds_between
        self._per_round = per_round
        self._not_closable: set[str] = set()

    async def keep_closing(self) -> None:
        """Close until cancelled, the first time at once; while the database is away, later."""
        await repeat_forever(self.close, self._seconds_between)

    async def close(self) -> None:
        """Close what is overdue; what cannot be closed is told once and stands in the way of nothing else.

        An outcome that another replica takes in the same moment stands.

        Raises:
            Unavailable: the database is away; what was closed by then stays closed.
        """
        before = self._clock.now() - self._patience
        overdue = await self._ledger.unreported(before, self._per_round + len(self._not_closable))
        for search_id in (one for one in overdue if one not in self._not_closable):
            error = await result_or_error(self._close(search_id))
            if isinstance(error, Unavailable):
                raise error
            if error is not None:
                self._not_closable.add(search_id)
                self._audit.not_closable(search_id, error)

    async def _close(self, search_id: str) -> None:
        charged = await self._ledger.find_search(search_id)
        if charged is not None:
            await self._audit.abandon(charged)
