"""The port that counts what keys and tenants use, over all replicas."""

from collections.abc import Sequence
from typing import Protocol

from backend.limits.domain.rates import RateAnswer, RateDemand, SettledTurns


class RateStore(Protocol):
    """Counts turns and tokens of the last minute, and turns that run.

    Whatever is not settled is forgotten after a while, unless it is renewed: its process may have died.
    """

    async def take(self, demand: RateDemand) -> RateAnswer:
        """Grant a demand where all parties have room for it, else change nothing; a repeated one is granted once.

        A party has room for tokens until it has used all of them: what a turn will use is known at its end only.

        Raises:
            Unavailable: the store is away. Retryable.
        """
        ...

    async def settle(self, ended: Sequence[SettledTurns]) -> None:
        """Give the places of ended turns back, and count their tokens; what was settled before changes nothing.

        Raises:
            Unavailable: the store is away. Retryable.
        """
        ...

    async def renew(self, held: Sequence[RateDemand]) -> None:
        """Keep the places of turns that run.

        Raises:
            Unavailable: the store is away. Retryable.
        """
        ...
