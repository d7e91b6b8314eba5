"""Amounts that callers share, such as places for turns and bytes of bodies: nobody can take all of them."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from shared.errors import BallastError, TooManyRequests, Unavailable

RETRY_AFTER_SECONDS = 1.0
"""How long a refused client waits; by then another replica, or what ends meanwhile, may have room."""

QUARTER = 0.25
HALF = 0.5
MOST = 0.75


class Holder(NamedTuple):
    """Who takes a part of an amount, and which part of it they may hold at most.

    Whatever their part, who `is_sure_of_least` may hold the least that the budget grants.
    """

    name: str
    part: float = HALF
    is_sure_of_least: bool = True


class Lease:
    """What somebody holds, until it is released; use it as `with`, which releases it unless it is kept."""

    def __init__(self, budget: "SharedBudget", holders: tuple[Holder, ...]) -> None:
        self._budget = budget
        self._holders = holders
        self._amount = 0
        self._is_kept = False

    @property
    def amount(self) -> int:
        """How much is held now."""
        return self._amount

    def grow(self, amount: int) -> None:
        """Take more.

        Raises:
            Unavailable: all is taken. Retryable.
            TooManyRequests: the holder has their part. Retryable.
        """
        self._budget.take(amount, self._holders)
        self._amount += amount

    def hand_to(self, *holders: Holder) -> None:
        """Let it count as held by others from now on; where they have their part, nothing changes.

        Raises:
            TooManyRequests: a new holder has their part. Retryable.
        """
        self._budget.give_back(self._amount, self._holders)
        try:
            self._budget.take(self._amount, holders)
        except BallastError:
            self._budget.take(self._amount, self._holders)
            raise
        self._holders = holders

    def keep(self) -> Callable[[], None]:
        """Hold it beyond the `with`, until the returned function is called."""
        self._is_kept = True
        return self.release

    def release(self) -> None:
        """Give all of it back; calling this again changes nothing."""
        self.shrink(self._amount)

    def shrink(self, amount: int) -> None:
        """Give a part of it back."""
        self._budget.give_back(amount, self._holders)
        self._amount -= amount
        self._budget.serve()

    def __enter__(self) -> Self:
        """Begin the block that holds it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release it unless it is kept."""
        if error is not None or not self._is_kept:
            self.release()


class SharedBudget:
    """An amount of something; `what` names it in errors, and `least` is what each holder may have at any rate."""

    def __init__(self, what: str, total: int, least: int = 1) -> None:
        self._what = what
        self._total = total
        self._least = least
        self._taken = 0
        self._held: Counter[str] = Counter()
        self._waiting: deque[tuple[asyncio.Future[None], Lease, int]] = deque()

    @property
    def taken(self) -> int:
        """How much is taken now."""
        return self._taken

    def lease(self, *holders: Holder) -> Lease:
        """Return a lease of nothing yet, which is to grow."""
        return Lease(self, holders)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits for a part of it."""
        return bool(self._waiting)

    async def wait_for(self, amount: int, *holders: Holder) -> Lease:
        """Take an amount once there is room: in the order of asking, and before those who do not wait."""
        lease, served = self.lease(*holders), asyncio.get_running_loop().create_future()
        self._waiting.append((served, lease, amount))
        self.serve()
        with lease:
            await served
            lease.keep()
        return lease

    def serve(self) -> None:
        """Give to those who wait, as far as there is room; whoever gives up is forgotten."""
        while self._waiting:
            served, lease, amount = self._waiting[0]
            if not served.done():
                try:
                    lease.grow(amount)
                except BallastError:
                    return
                served.set_result(None)
            self._waiting.popleft()

    def stop_waiting(self, refusal: BallastError) -> None:
        """Refuse all who wait."""
        while self._waiting:
            served, _, _ = self._waiting.popleft()
            if not served.done():
                served.set_exception(refusal)

    def take(self, amount: int, holders: tuple[Holder, ...]) -> None:
        """Take an amount for holders; see `Lease.grow`."""
        if self._taken + amount > self._total:
            raise Unavailable(f"The server has no {self._what} left now.", retry_after_seconds=RETRY_AFTER_SECONDS)
        for holder in holders:
            if self._held.get(holder.name, 0) + amount > self._most(holder):
                raise TooManyRequests(
                    f"Your requests hold all the {self._what} that one key may have at a time.",
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )
        self._taken += amount
        for holder in holders:
            self._held[holder.name] += amount

    def give_back(self, amount: int, holders: tuple[Holder, ...]) -> None:
        """Give an amount back; who holds nothing is forgotten."""
        self._taken -= amount
        for holder in holders:
            self._held[holder.name] -= amount
            if not self._held[holder.name]:
                del self._held[holder.name]

    def _most(self, holder: Holder) -> int:
        part = int(self._total * holder.part)
        return max(self._least, part) if holder.is_sure_of_least else part
