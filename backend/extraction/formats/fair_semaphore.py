"""A semaphore over a few places: fair between users, with a bounded queue for each tenant."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from shared.errors import Unavailable

RETRY_AFTER_SECONDS = 5.0


class Claimant(NamedTuple):
    """The user and tenant that ask for a place."""

    tenant: str
    user_id: str


class FairSemaphore:
    """`count` places. Users take turns, and none has more than all but one, so that nobody waits for one user alone.

    At most `queue_length` wait for each tenant, and `whole_queue_length` in all.
    """

    def __init__(self, count: int, queue_length: int, whole_queue_length: int) -> None:
        self._free = count
        self._most_of_one = max(1, count - 1)
        self._queue_length = queue_length
        self._whole_queue_length = whole_queue_length
        self._held = Counter[Claimant]()
        self._waiting: dict[Claimant, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, claimant: Claimant) -> AsyncGenerator[None]:
        """Wait for a place and hold it.

        Raises:
            Unavailable: too many wait already. Retryable.
        """
        self._check_queue(claimant)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(claimant, deque()).append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(claimant, turn)
            else:
                self._give_back(claimant)
            raise
        try:
            yield
        finally:
            self._give_back(claimant)

    def _check_queue(self, claimant: Claimant) -> None:
        lengths = {one: len(turns) for one, turns in self._waiting.items()}
        of_tenant = sum(length for one, length in lengths.items() if one.tenant == claimant.tenant)
        if of_tenant >= self._queue_length or sum(lengths.values()) >= self._whole_queue_length:
            raise Unavailable("Too many documents are waiting to be read.", retry_after_seconds=RETRY_AFTER_SECONDS)

    def _admit(self) -> None:
        """Give free places to those who wait; who got one goes behind the others."""
        for claimant in list(self._waiting):
            if self._free and self._held[claimant] < self._most_of_one:
                turns = deque(turn for turn in self._waiting.pop(claimant) if not turn.cancelled())
                if turns:
                    self._free -= 1
                    self._held[claimant] += 1
                    turns.popleft().set_result(None)
                if turns:
                    self._waiting[claimant] = turns

    def _give_back(self, claimant: Claimant) -> None:
        self._free += 1
        self._held[claimant] -= 1
        if not self._held[claimant]:
            del self._held[claimant]
        self._admit()

    def _forget(self, claimant: Claimant, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(claimant)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[claimant]
