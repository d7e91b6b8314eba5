"""The lease of this process on its turns: while it cannot be renewed, nothing of a turn is shown to clients."""

import asyncio
from collections.abc import Callable

from backend.conversations.domain.leases import LeaseTerms
from backend.conversations.ports.conversations import TurnStore


class TurnLease:
    """Holds the lease of one replica; without terms this process is the only replica, and nobody can take its turns.

    `lapses` counts the renewals that came too late: since each of them, others may have taken turns over.

    The store counts a lease from the moment in which it writes it. This class counts from before the write was sent,
    and ends a little earlier, so that a holder stops before any other can judge it.
    """

    def __init__(self, replica: str, terms: LeaseTerms | None) -> None:
        self.replica = replica
        self.terms = terms
        self.lapses = 0
        self._held_until = float("-inf")
        self._renewed = asyncio.Event()

    async def renew(self, turns: TurnStore) -> None:
        """Renew the lease; an only replica has none.

        Raises:
            Unavailable: the store is away.
        """
        if self.terms is None:
            return
        begun = asyncio.get_running_loop().time()
        await turns.renew(self.replica, self.terms)
        if not self.is_held:
            self.lapses += 1
        self._held_until = begun + self.terms.seconds - self.terms.fresh_seconds
        self._renewed.set()
        self._renewed = asyncio.Event()

    async def wait_until_renewed(self) -> None:
        """Wait for the next renewal: only just behind one may a replica judge others."""
        await self._renewed.wait()

    @property
    def is_held(self) -> bool:
        """Whether this process may write its turns now."""
        return self.terms is None or asyncio.get_running_loop().time() < self._held_until

    def tenure(self) -> Callable[[], bool]:
        """Return what says whether the lease was held all the time since this call: nobody has taken a turn over."""
        lapses = self.lapses
        return lambda: self.is_held and self.lapses == lapses

    async def wait_until_held(self) -> None:
        """Wait until this process may write its turns."""
        while not self.is_held:
            await self._renewed.wait()
