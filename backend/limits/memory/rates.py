"""The counts of keys and tenants in the memory of the only replica."""

from collections import Counter
from collections.abc import Sequence

from backend.limits.domain.rates import (
    LimitedParty,
    PartyUse,
    RateAnswer,
    RateDemand,
    SettledTurns,
    drop_expired,
    reset_seconds,
    wait_seconds,
)
from shared.clock import Clock

_KEPT_PARTIES = 10_000
"""From so many on, those of which nothing counts any more are forgotten."""

_FULL_WAIT_SECONDS = 1
"""How long a caller whose turns are all running is told to wait: nobody knows when one of them ends."""


class _Counts:
    """What one party has used, by seconds, and the leases of its turns that run."""

    def __init__(self) -> None:
        self.turns: dict[int, int] = {}
        self.tokens: dict[int, int] = {}
        self.running: Counter[str] = Counter()

    def forget(self, now: int) -> None:
        self.turns, self.tokens = drop_expired(self.turns, now), drop_expired(self.tokens, now)

    @property
    def is_empty(self) -> bool:
        return not (self.turns or self.tokens or self.running)

    def wait_seconds(self, party: LimitedParty, now: int, demand: RateDemand) -> int:
        limits, running = party.limits, self.running.total() + demand.turns
        is_full = limits.turns_at_once is not None and running > limits.turns_at_once
        return max(self.minute_seconds(party, now, demand.begun), _FULL_WAIT_SECONDS if is_full else 0)

    def minute_seconds(self, party: LimitedParty, now: int, begun: int) -> int:
        """Return how long so many turns have to wait, whichever turns end meanwhile."""
        of_turns = wait_seconds(self.turns, now, begun, party.limits.turns_per_minute)
        return max(of_turns, wait_seconds(self.tokens, now, 1, party.limits.tokens_per_minute))

    def use(self, party: LimitedParty, moment: float) -> PartyUse:
        now = int(moment)
        minute_seconds = self.minute_seconds(party, now, 1)
        return PartyUse(
            sum(self.turns.values()),
            reset_seconds(self.turns, now),
            sum(self.tokens.values()),
            reset_seconds(self.tokens, now),
            self.running.total(),
            now + minute_seconds - moment if minute_seconds else 0.0,
        )


class MemoryRateStore:
    """Implements `RateStore`; nothing awaits, so that each demand is granted or refused as a whole."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[tuple[str, str], _Counts] = {}

    async def take(self, demand: RateDemand) -> RateAnswer:
        """Grant a demand where all parties have room for it."""
        moment = self._clock.now().timestamp()
        now = int(moment)
        pairs = [(self._of(demand.tenant, party, now), party) for party in demand.parties]
        wait = 0
        if demand.turns and not all(demand.lease_id in counts.running for counts, _ in pairs):
            wait = max(counts.wait_seconds(party, now, demand) for counts, party in pairs)
            for counts, _ in pairs if not wait else ():
                if demand.begun:
                    counts.turns[now] = counts.turns.get(now, 0) + demand.begun
                counts.running[demand.lease_id] = demand.turns
        return RateAnswer(not wait, wait, tuple(counts.use(party, moment) for counts, party in pairs))

    async def settle(self, ended: Sequence[SettledTurns]) -> None:
        """Give places back and count tokens."""
        now = self._now()
        for demand, tokens in ended:
            for party in demand.parties:
                counts = self._of(demand.tenant, party, now)
                if counts.running.pop(demand.lease_id, 0) and tokens:
                    counts.tokens[now] = counts.tokens.get(now, 0) + tokens

    async def renew(self, held: Sequence[RateDemand]) -> None:
        """Return: what this process holds ends with it."""

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def _of(self, tenant: str, party: LimitedParty, now: int) -> _Counts:
        name = (tenant, party.name)
        if name not in self._counts and len(self._counts) >= _KEPT_PARTIES:
            self._forget_idle(now)
        counts = self._counts.setdefault(name, _Counts())
        counts.forget(now)
        return counts

    def _forget_idle(self, now: int) -> None:
        for counts in self._counts.values():
            counts.forget(now)
        self._counts = {name: counts for name, counts in self._counts.items() if not counts.is_empty}
