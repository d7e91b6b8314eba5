"""What this process knows of keys at their limits, so that it repeats a refusal without asking anybody."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from backend.foundation.domain.bounded import Bounded
from backend.identity.domain import Caller
from backend.turns.domain.rates import RateAnswer, RateDemand, later, rate_headers, refusal_of
from shared.errors import TooManyRequests

MOST_KNOWN = 10_000
LOOK_AGAIN_SECONDS = 1.0
"""So often one request of a refused key goes the whole way: the key may be revoked, or the counts be lost."""

REFUSALS_A_SECOND = 50
REFUSALS_AT_ONCE = 10
LONGEST_DELAY_SECONDS = 5.0


@dataclass
class _Refused:
    """A refusal by the shared counts, and how long it can be repeated."""

    answer: RateAnswer
    known_at: float
    sure_until: float
    look_again_at: float


@dataclass(frozen=True)
class RepeatedRefusal:
    """The refusal that the shared counts would give now, and the headers that tell of the limits."""

    error: TooManyRequests
    headers: dict[str, str]


class KnownRefusals:
    """Repeats refusals as long as the shared counts would certainly give them too.

    That is until the oldest turns or tokens of the minute are forgotten, and while this process alone runs as many
    turns as may run at a time. `now` is a clock that nobody sets.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._refused: Bounded[tuple[str, ...], _Refused] = Bounded(MOST_KNOWN)
        self._running: Counter[tuple[str, str]] = Counter()

    def asked(self, demand: RateDemand) -> Callable[[RateAnswer | None], None]:
        """Return what takes the answer of the shared counts, None where they are away; called before these are asked.

        How long they are sure is counted from here, which is never later than the moment at which they answer.
        """
        asked_at = self._now()

        def note(answer: RateAnswer | None) -> None:
            name = _name_of(demand)
            if answer is None:
                self._refused.drop(name)
            elif not answer.is_granted:
                look_again_at = asked_at + LOOK_AGAIN_SECONDS
                sure_until = asked_at + answer.sure_seconds
                self._refused.put(name, _Refused(answer, asked_at, sure_until, look_again_at))
            elif demand.begun and (refused := self._refused.find(name)) is not None and refused.known_at < asked_at:
                refused.sure_until = asked_at

        return note

    def begun(self, demand: RateDemand) -> None:
        """Count turns that this process runs, and whose places the shared counts have given away."""
        for party in demand.parties:
            self._running[demand.tenant, party.name] += demand.turns

    def ended(self, demand: RateDemand) -> None:
        """Count them no more; called before the shared counts take their places back."""
        for party in demand.parties:
            name = (demand.tenant, party.name)
            self._running[name] -= demand.turns
            if not self._running[name]:
                del self._running[name]

    def repeated(self, demand: RateDemand) -> RepeatedRefusal | None:
        """Return the refusal of a single turn, where it is certain; None where the shared counts are to be asked."""
        refused, now = self._refused.find(_name_of(demand)), self._now()
        if refused is None or not (now < refused.sure_until or self._is_full(demand)):
            return None
        if now >= refused.look_again_at:
            refused.look_again_at = now + LOOK_AGAIN_SECONDS
            return None
        uses = later(refused.answer.uses, int(now - refused.known_at), self._running_of(demand))
        wait_seconds = max(1, math.ceil(refused.sure_until - now))
        error = TooManyRequests(refusal_of(demand, uses), retry_after_seconds=wait_seconds)
        return RepeatedRefusal(error, rate_headers(demand.parties, uses))

    def _running_of(self, demand: RateDemand) -> list[int]:
        return [self._running[demand.tenant, party.name] for party in demand.parties]

    def _is_full(self, demand: RateDemand) -> bool:
        pairs = zip(demand.parties, self._running_of(demand), strict=True)
        limits = [(party.limits.turns_at_once, running) for party, running in pairs]
        return any(limit is not None and running >= limit for limit, running in limits)


class RefusedCallers:
    """Whose requests have been refused, by a digest of what they present, and how fast further refusals may leave."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._callers: Bounded[bytes, Caller] = Bounded(MOST_KNOWN)
        self._due: Bounded[str, float] = Bounded(MOST_KNOWN)

    def find(self, presented: bytes) -> Caller | None:
        """Return who was refused the last time that this was presented."""
        return self._callers.find(presented)

    def note(self, presented: bytes, caller: Caller) -> None:
        """Note whom the presented key or token names, and that he is refused."""
        self._callers.put(presented, caller)

    def forget(self, presented: bytes) -> None:
        """Forget whom it names: it is no longer valid."""
        self._callers.drop(presented)

    def delay_seconds(self, key_id: str) -> float:
        """Return how long the next refusal of a key is to be held back, so that refusals take little of a process.

        Who sends a request whenever another one is answered is thereby slowed, however many he sends at a time.
        """
        now = self._now()
        due = max(self._due.find(key_id) or now, now)
        delay = min(LONGEST_DELAY_SECONDS, max(0.0, due - now - REFUSALS_AT_ONCE / REFUSALS_A_SECOND))
        latest = now + LONGEST_DELAY_SECONDS + REFUSALS_AT_ONCE / REFUSALS_A_SECOND
        self._due.put(key_id, min(latest, due + 1 / REFUSALS_A_SECOND))
        return delay


def _name_of(demand: RateDemand) -> tuple[str, ...]:
    return (demand.tenant, *(party.name for party in demand.parties))
