"""Limits of keys and tenants: turns and tokens a minute, and turns at a time."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from backend.foundation.domain.bounded import Bounded
from backend.foundation.services.supervision import is_set_within
from backend.identity.domain import NO_LIMITS, Caller, RateLimits
from backend.limits.domain.rates import RateAnswer, RateDemand, SettledTurns, parties_of, rate_headers, refusal_of
from backend.limits.ports.rates import RateStore
from backend.limits.services.known_refusals import (
    MOST_KNOWN,
    KnownRefusals,
    RefusedCallers,
    RepeatedRefusal,
    refusal_by,
)
from shared.errors import TooManyRequests, Unavailable
from shared.ids import IdPrefix, new_id

ANSWER_SECONDS = 0.5
"""How long a request waits for the counts; then it is let through, and its turn is not counted."""

READ_FIRST_SECONDS = 2.0
"""How long a request of a caller who was refused last waits for their other one that is read already."""

RENEW_SECONDS = 8.0
MOST_UNSETTLED = 10_000


class RateObserver(Protocol):
    """Receives what the limits report; its methods must not raise and must not block."""

    def turns_refused(self, turns: int) -> None:
        """Turns were refused because of a limit."""
        ...

    def turns_uncounted(self, turns: int) -> None:
        """Turns were let through without a count: the store of counts is away."""
        ...


class DefaultLimits(NamedTuple):
    """The operator's limits of each key that has none of its own, and of each tenant."""

    key: RateLimits
    tenant: RateLimits


NO_DEFAULTS = DefaultLimits(NO_LIMITS, NO_LIMITS)


class RateLease:
    """What was granted, until it is settled; use it as `with`, which gives the places back unless a turn has them."""

    def __init__(self, settle: Callable[[int], None]) -> None:
        self._settle = settle
        self._is_handed_on = False

    def keep(self, tokens: Callable[[], int]) -> Callable[[], None]:
        """Return what settles it at the end of the turn that has it, with the tokens that are counted then."""
        self._is_handed_on = True
        return lambda: self._settle(tokens())

    def settle(self, tokens: int) -> None:
        """Settle it now, with so many tokens."""
        self._is_handed_on = True
        self._settle(tokens)

    def __enter__(self) -> "RateLease":
        """Begin the block that holds it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the places back, unless a turn has them; a demand that led to no turn stays counted."""
        if not self._is_handed_on:
            self._settle(0)


def _seconds() -> float:
    return asyncio.get_running_loop().time()


class TurnRates:
    """Decides whether a key may begin turns now; `now` is a clock that nobody sets.

    A request waits for `read_first_seconds` for another one of its key that is read already.
    """

    def __init__(
        self,
        store: RateStore,
        observer: RateObserver,
        defaults: DefaultLimits = NO_DEFAULTS,
        now: Callable[[], float] = _seconds,
        read_first_seconds: float = READ_FIRST_SECONDS,
    ) -> None:
        self._store = store
        self._observer = observer
        self._defaults = defaults
        self._read_first_seconds = read_first_seconds
        self._known = KnownRefusals(now)
        self.refused_callers = RefusedCallers(now)
        self._read_first: Bounded[tuple[str, str], asyncio.Event] = Bounded(MOST_KNOWN)
        self._held: dict[str, RateDemand] = {}
        self._ended: list[SettledTurns] = []
        self._has_ended = asyncio.Event()
        self._renewed_at = 0.0

    async def take(self, caller: Caller, turns: int = 1) -> RateLease:
        """Take room for turns that are about to begin.

        Raises:
            TooManyRequests: a limit of the key or of its tenant is reached. Retryable.
        """
        try:
            return await self._take(self._demand(caller, turns, begun=turns))
        finally:
            if (first := self._read_first.find(_name_of(caller))) is not None:
                first.set()

    async def take_again(self, caller: Caller) -> RateLease:
        """Take the place of a turn that has waited: the minute in which it was asked for has counted it.

        Raises:
            TooManyRequests: as many turns run as may, or all tokens are used. Retryable.
        """
        return await self._take(self._demand(caller, 1, begun=0))

    async def refusal(self, caller: Caller, is_read: asyncio.Event) -> RepeatedRefusal | None:
        """Return the refusal that another turn of the caller would meet now, or None.

        The counts are asked where one was refused last and may be granted by now, and nothing is taken from them. What
        is free then may be a single turn: of requests that come together, one is to be read, and the others refused by
        what it leaves. They wait until it has taken its turn, or `is_read` is set, with which it came; but not for
        long, because it may come slowly.
        """
        demand = self._demand(caller, 0, begun=0)
        if demand is None:
            return None
        name, loop = _name_of(caller), asyncio.get_running_loop()
        until = loop.time() + self._read_first_seconds
        while True:
            refusal = await self._refusal(demand)
            if refusal is not None or not self._known.was_refused(demand):
                return refusal
            first = self._read_first.find(name)
            if first is None or first.is_set() or not await is_set_within(first, until - loop.time()):
                self._read_first.put(name, is_read)
                return None

    async def _refusal(self, demand: RateDemand) -> RepeatedRefusal | None:
        if not self._known.must_ask(demand):
            return self._known.repeat(demand)
        note = self._known.note_asking(demand)
        answer = await self._answer(demand)
        note(answer)
        return refusal_by(demand, answer) if answer is not None else None

    def note_repeated(self) -> None:
        """Count a refusal that was repeated."""
        self._observer.turns_refused(1)

    async def _take(self, demand: RateDemand | None) -> RateLease:
        if demand is None:
            return RateLease(_settle_nothing)
        note = self._known.note_asking(demand)
        answer = await self._answer(demand)
        note(answer)
        if answer is None:
            return RateLease(_settle_nothing)
        if not answer.is_granted:
            self._observer.turns_refused(demand.turns)
            raise TooManyRequests(refusal_of(demand, answer.uses), retry_after_seconds=answer.wait_seconds)
        self._held[demand.lease_id] = demand
        return RateLease(lambda tokens: self._note_end(demand, tokens))

    async def headers(self, caller: Caller) -> dict[str, str]:
        """Return what an answer tells of the limits; nothing where there are none, or their counts are away."""
        demand = self._demand(caller, 0, begun=0)
        answer = await self._answer(demand)
        return rate_headers(demand.parties, answer.uses) if demand is not None and answer is not None else {}

    async def step(self) -> None:
        """Write down what has ended, as soon as something has, and keep what runs.

        Raises:
            Unavailable: the store is away. Places of ended turns are then given back when their leases end.
        """
        await is_set_within(self._has_ended, RENEW_SECONDS)
        await self.write()

    async def write(self) -> None:
        """Write down what has ended, and keep what runs."""
        self._has_ended.clear()
        ended, self._ended = self._ended, []
        await self._store.settle(ended)
        now = asyncio.get_running_loop().time()
        if self._held and now - self._renewed_at >= RENEW_SECONDS:
            self._renewed_at = now
            await self._store.renew(list(self._held.values()))

    def _demand(self, caller: Caller, turns: int, begun: int) -> RateDemand | None:
        parties = parties_of(caller, *self._defaults)
        if not parties:
            return None
        return RateDemand(caller.tenant, parties, turns, begun, new_id(IdPrefix.RATE_LEASE) if turns else "")

    async def _answer(self, demand: RateDemand | None) -> RateAnswer | None:
        """Return what the store says, or None where nothing is limited, or the store is away."""
        if demand is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._store.take(demand)
        except (Unavailable, TimeoutError):
            if demand.turns:
                self._observer.turns_uncounted(demand.turns)
            return None

    def _note_end(self, demand: RateDemand, tokens: int) -> None:
        if self._held.pop(demand.lease_id, None) is None:
            return
        if len(self._ended) < MOST_UNSETTLED:
            self._ended.append(SettledTurns(demand, tokens))
        self._has_ended.set()


def _name_of(caller: Caller) -> tuple[str, str]:
    return caller.tenant, caller.key_id or caller.user_id


def _settle_nothing(_: int) -> None:
    """Nothing was counted."""
