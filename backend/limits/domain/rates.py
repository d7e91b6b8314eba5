"""Rate limits: the turns and tokens of the last minute, counted by seconds, and the headers that show them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backend.identity.domain import Caller, RateLimits

WINDOW_SECONDS = 60


class LimitedParty(NamedTuple):
    """A key or a tenant, under a name of its own, and what it may have."""

    name: str
    limits: RateLimits


class RateDemand(NamedTuple):
    """What a request asks for: so many turns, each of which runs under a place of its own named after `lease_id`.

    `begun` is how many of them the minute counts: none where it has counted them before. No turns: nothing is taken.
    All parties are of one tenant, whose counts a Redis cluster keeps in one place.
    """

    tenant: str
    parties: tuple[LimitedParty, ...]
    turns: int = 0
    begun: int = 0
    lease_id: str = ""


class PartyUse(NamedTuple):
    """What a party has used, and in how many seconds that will be forgotten.

    Whatever ends meanwhile, one more turn of the party is refused for `sure_seconds`: what a minute counts only grows
    until the oldest of it is forgotten. Nobody knows so of turns that run.
    """

    turns: int
    turns_reset_seconds: int
    tokens: int
    tokens_reset_seconds: int
    running: int
    sure_seconds: float = 0.0


class RateAnswer(NamedTuple):
    """Whether a demand was granted; else the longest wait after which it may be.

    `uses` has one for each party, as it stands afterwards.
    """

    is_granted: bool
    wait_seconds: int
    uses: tuple[PartyUse, ...]


class SettledTurns(NamedTuple):
    """What a granted demand has come to: its turns have ended, and have used so many tokens."""

    demand: RateDemand
    tokens: int


def parties_of(caller: Caller, for_keys: RateLimits, for_tenants: RateLimits) -> tuple[LimitedParty, ...]:
    """Return whose limits a request of the caller is counted against; those without limits are left out."""
    key = f"key:{caller.key_id}" if caller.key_id else f"user:{caller.user_id}"
    both = LimitedParty(key, caller.limits.over(for_keys)), LimitedParty("tenant", for_tenants)
    return tuple(party for party in both if not party.limits.is_empty)


def drop_expired(seconds: Mapping[int, int], now: int) -> dict[int, int]:
    """Return the amounts that still count, by the second in which they were used.

    A second that is to come was noted before the clock was set back. Far ahead it counts no more, for else whoever was
    at a limit would be refused until it has come.
    """
    return {second: amount for second, amount in seconds.items() if abs(now - second) < WINDOW_SECONDS}


def reset_seconds(seconds: Mapping[int, int], now: int) -> int:
    """Return after how many seconds nothing of it counts any more."""
    return max(seconds) + WINDOW_SECONDS - now if seconds else 0


def wait_seconds(seconds: Mapping[int, int], now: int, wanted: int, limit: int | None) -> int:
    """Return after how many seconds there is room for the wanted amount; 0 where there is."""
    excess = sum(seconds.values()) + wanted - limit if limit is not None else 0
    for second in sorted(seconds):
        if excess <= 0:
            break
        excess -= seconds[second]
        if excess <= 0:
            return second + WINDOW_SECONDS - now
    return WINDOW_SECONDS if excess > 0 else 0


def later(use: PartyUse, elapsed_seconds: float) -> PartyUse:
    """Return a use as it stands after a while in which nothing was used and nothing forgotten.

    Nobody knows how many turns run by then.
    """
    return use._replace(
        running=0,
        turns_reset_seconds=max(0, use.turns_reset_seconds - int(elapsed_seconds)),
        tokens_reset_seconds=max(0, use.tokens_reset_seconds - int(elapsed_seconds)),
        sure_seconds=max(0.0, use.sure_seconds - elapsed_seconds),
    )


def is_refused(party: LimitedParty, use: PartyUse) -> bool:
    """Whether one more turn of a party would be refused now."""
    at_once = party.limits.turns_at_once
    return use.sure_seconds > 0 or (at_once is not None and use.running >= at_once)


def rate_headers(parties: Sequence[LimitedParty], uses: Sequence[PartyUse]) -> dict[str, str]:
    """Tell of turns and of tokens the limit that has the least left, in OpenAI's headers."""
    pairs = list(zip(parties, uses, strict=True))
    told = [
        ("requests", [(p.limits.turns_per_minute, u.turns, u.turns_reset_seconds) for p, u in pairs]),
        ("tokens", [(p.limits.tokens_per_minute, u.tokens, u.tokens_reset_seconds) for p, u in pairs]),
    ]
    headers: dict[str, str] = {}
    for name, each in told:
        left = [(max(0, limit - used), limit, reset) for limit, used, reset in each if limit is not None]
        if left:
            remaining, limit, reset = min(left)
            headers[f"x-ratelimit-limit-{name}"] = str(limit)
            headers[f"x-ratelimit-remaining-{name}"] = str(remaining)
            headers[f"x-ratelimit-reset-{name}"] = f"{reset // 60}m{reset % 60}s" if reset >= 60 else f"{reset}s"
    return headers


def refusal_of(demand: RateDemand, uses: Sequence[PartyUse]) -> str:
    """Say which limit a refused demand has reached."""
    for party, use in zip(demand.parties, uses, strict=True):
        whose = "tenant" if party.name == "tenant" else "key"
        limits = party.limits
        if limits.turns_at_once is not None and use.running + demand.turns > limits.turns_at_once:
            return f"This {whose} may have {limits.turns_at_once} turns running at a time, and has {use.running}."
        if limits.turns_per_minute is not None and use.turns + demand.begun > limits.turns_per_minute:
            return f"This {whose} may begin {limits.turns_per_minute} turns a minute, and has begun {use.turns}."
        if limits.tokens_per_minute is not None and use.tokens >= limits.tokens_per_minute:
            return f"This {whose} may use {limits.tokens_per_minute} tokens a minute, and has used {use.tokens}."
    return "A limit of this key or tenant is reached."
