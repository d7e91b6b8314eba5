"""Closing restricted searches whose outcome was never reported, as their turn was stopped, and forgetting old ones."""

from datetime import timedelta

from backend.foundation.services.supervision import result_or_error
from backend.restricted.domain.restricted_budget import MONTH
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.restricted_audit import RestrictedAudit
from shared.clock import Clock
from shared.errors import Unavailable

CLOSE_SEARCHES_SECONDS = 60.0
"""The pause between two rounds."""

CLOSED_PER_ROUND = 1_000
GRACE = timedelta(minutes=1)
"""Added to the longest time of a turn: by then the ticket has expired, so that no outcome can be reported."""


class CloseSearches:
    """Records as refused the searches that were charged and not reported within a turn's time."""

    def __init__(
        self,
        ledger: RestrictedLedger,
        audit: RestrictedAudit,
        clock: Clock,
        turn_time: timedelta,
        *,
        per_round: int = CLOSED_PER_ROUND,
    ) -> None:
        self._ledger = ledger
        self._audit = audit
        self._clock = clock
        self._patience = turn_time + GRACE
        self._per_round = per_round
        self._not_closable: set[str] = set()

    async def close(self) -> None:
        """Close overdue searches; one that cannot be closed is logged once and does not hold up the others.

        An outcome that another replica writes at the same moment takes precedence.

        Raises:
            Unavailable: the database is away; searches closed by then stay closed.
        """
        before = self._clock.now() - self._patience
        overdue = await self._ledger.find_unreported(before, self._per_round + len(self._not_closable))
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
