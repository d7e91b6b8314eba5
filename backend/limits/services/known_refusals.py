"""Keys and tenants that this process knows to be at their limits: it refuses them again without asking the store."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend.foundation.domain.bounded import Bounded
from backend.identity.domain import Caller
from backend.limits.domain.rates import (
    LimitedParty,
    PartyUse,
    RateAnswer,
    RateDemand,
    is_refused,
    later,
    rate_headers,
    refusal_of,
)
from shared.errors import TooManyRequests

MOST_KNOWN = 10_000
LOOK_AGAIN_SECONDS = 1.0
"""So often the shared counts are asked about a party that is surely refused: they may have been lost."""

FULL_WAIT_SECONDS = 1
"""How long a caller whose turns are all running is told to wait: nobody knows when one of them ends."""


@dataclass
class _Known:
    """What a party had used when the shared counts refused one more turn, be it because of this party or another."""

    party: LimitedParty
    use: PartyUse
    known_at: float
    look_again_at: float

    @property
    def was_refused(self) -> bool:
        return is_refused(self.party, self.use)

    def at(self, now: float) -> PartyUse:
        return later(self.use, now - self.known_at)


@dataclass(frozen=True)
class RepeatedRefusal:
    """The refusal that the shared counts would give now, and the headers that tell of the limits.

    `ran_out` names the party that has nothing left; where a key and its tenant have not, the tenant.
    """

    error: TooManyRequests
    headers: dict[str, str]
    ran_out: str


class KnownRefusals:
    """Knows of each party, be it a key or a tenant, whether the shared counts last said that it has nothing left.

    Whose turns are refused thereby follows from what has run out: all keys of a tenant that is at its limit, be they
    known here or not. `now` is a clock that nobody sets.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: Bounded[tuple[str, str], _Known] = Bounded(MOST_KNOWN)

    def note_asking(self, demand: RateDemand) -> Callable[[RateAnswer | None], None]:
        """Return what takes the answer of the shared counts, None where they are away; called before these are asked.

        How long a refusal is sure is counted from here, which is never later than the moment at which they answer.
        """
        asked_at = self._now()

        def note(answer: RateAnswer | None) -> None:
            uses = answer.uses if answer is not None else ()
            pairs = zip(demand.parties, uses, strict=False)
            known = [_Known(*pair, asked_at, asked_at + LOOK_AGAIN_SECONDS) for pair in pairs]
            if any(each.was_refused for each in known):
                self._put(demand.tenant, known)
            elif answer is None:
                self._drop(demand, math.inf)
            elif demand.turns:
                self._drop(demand, asked_at)

        return note

    def _put(self, tenant: str, known: Sequence[_Known]) -> None:
        for each in known:
            older = self._known.find((tenant, each.party.name))
            if older is None or older.known_at <= each.known_at:
                self._known.put((tenant, each.party.name), each)

    def _drop(self, demand: RateDemand, asked_at: float) -> None:
        for known in self._of(demand):
            if known is not None and known.was_refused and known.known_at < asked_at:
                self._known.drop((demand.tenant, known.party.name))

    def was_refused(self, demand: RateDemand) -> bool:
        """Whether the shared counts last said of one of the parties that it has nothing left."""
        return any(each is not None and each.was_refused for each in self._of(demand))

    def must_ask(self, demand: RateDemand) -> bool:
        """Whether the shared counts are to be asked before one more turn is refused or read.

        That is where a party was refused: as soon as none is sure to be refused still, or a party is not known here,
        whose headers would tell nothing; else now and then.
        """
        if not self.was_refused(demand):
            return False
        now, known = self._now(), self._of(demand)
        is_due = any(each is None or now >= each.look_again_at for each in known)
        if is_due:
            for each in known:
                if each is not None:
                    each.look_again_at = now + LOOK_AGAIN_SECONDS
        return is_due or not any(each is not None and each.at(now).sure_seconds > 0 for each in known)

    def repeat(self, demand: RateDemand) -> RepeatedRefusal | None:
        """Return the refusal of one more turn by what is sure; None where the shared counts are to be asked."""
        now = self._now()
        uses = [(each.party, each.at(now)) for each in self._of(demand) if each is not None]
        return _refusal(demand, uses)

    def _of(self, demand: RateDemand) -> list[_Known | None]:
        return [self._known.find((demand.tenant, party.name)) for party in demand.parties]


def refusal_by(demand: RateDemand, answer: RateAnswer) -> RepeatedRefusal | None:
    """Return the refusal of one more turn by what the shared counts say now, or None."""
    return _refusal(demand, list(zip(demand.parties, answer.uses, strict=True)))


def _refusal(demand: RateDemand, uses: Sequence[tuple[LimitedParty, PartyUse]]) -> RepeatedRefusal | None:
    refused = [(party, use) for party, use in uses if is_refused(party, use)]
    if not refused:
        return None
    parties, of_parties = zip(*refused, strict=True)
    words = refusal_of(demand._replace(parties=parties, turns=1, begun=1), of_parties)
    wait_seconds = max(FULL_WAIT_SECONDS, *(math.ceil(use.sure_seconds) for use in of_parties))
    error = TooManyRequests(words, retry_after_seconds=wait_seconds)
    headers = rate_headers([party for party, _ in uses], [use for _, use in uses])
    return RepeatedRefusal(error, headers, f"{demand.tenant}/{parties[-1].name}")


class RefusedCallers:
    """Whom a key or token names that was refused a moment ago, by a digest of it, so that nobody is asked for that.

    A key that is revoked meanwhile is told so a second later.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._callers: Bounded[bytes, tuple[Caller, float]] = Bounded(MOST_KNOWN)

    def find(self, presented: bytes) -> Caller | None:
        """Return whom this named when it was last looked up, where that is not long ago."""
        caller, known_at = self._callers.find(presented) or (None, 0.0)
        return caller if self._now() < known_at + LOOK_AGAIN_SECONDS else None

    def note(self, presented: bytes, caller: Caller) -> None:
        """Note the caller that this names, as just looked up, and that they are refused."""
        self._callers.put(presented, (caller, self._now()))
