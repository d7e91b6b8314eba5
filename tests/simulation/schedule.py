"""What happens when in a simulation: faults and turns, drawn from the seed alone before anything runs."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from tests.chaos.model import LOOK_UP
from tests.chaos.schedule import LASTS_SECONDS, SHORT_SECONDS, FaultKind

BACKENDS = ("backend_1", "backend_2")
SHELLS = ("chat_shell_1", "chat_shell_2")
STORES = ("postgres", "valkey")
ROUTES = tuple(f"{one} {to}" for one in BACKENDS for to in (*STORES, *SHELLS))

FAIL_OVER, FLUSH, EVICT = "fail_over", "flush", "evict"
"""Faults that real processes are not put through by seed: a standby that lacks a second, and events that are lost."""

LOST_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""How long before its end a simulation is without faults."""

SHELL_FREEZE_SECONDS = (5.0, 110.0)
FIRST_SECONDS = 8.0
AIMED, LONGEST_AIM_SECONDS = 0.75, 4.0
"""How many of the faults are aimed at a turn, and how long behind its beginning they come at most."""

FAULT_GAP_SECONDS = (8.0, 30.0)
TURN_GAP_SECONDS = (3.0, 18.0)
CONVERSATIONS = 5


class Happening(NamedTuple):
    """A fault, by the name of its kind."""

    at_seconds: float
    lasts_seconds: float
    kind: str
    target: str

    @property
    def ends_seconds(self) -> float:
        """When it is over."""
        return self.at_seconds + self.lasts_seconds


class Plan(NamedTuple):
    """A turn that a client asks for, how it asks, and what it does meanwhile."""

    at_seconds: float
    key: str
    conversation: int
    replica: int
    words: int
    pause_milliseconds: int
    call: str
    way: str
    meanwhile: str
    after_seconds: float


BEHIND_OTHERS = frozenset({"queue", "steer", "cancel_running"})
SOON_SECONDS = (0.2, 2.0)
WAYS = ("stream", "stream", "stream", "plain", "background", "keyed", "queue", "queue", "steer", "cancel_running")
MEANWHILE = ("", "", "", "leave", "second", "cancel", "delete")

CARDS: tuple[tuple[str, str], ...] = (
    *((kind, one) for kind in (FaultKind.KILL, FaultKind.FREEZE) for one in (*BACKENDS, *SHELLS, *STORES)),
    *((FaultKind.FREEZE, one) for one in (*BACKENDS, *SHELLS)),
    *((FaultKind.FREEZE, one) for one in (*BACKENDS, *SHELLS)),
    *((kind, one) for kind in (FaultKind.REFUSE, FaultKind.CUT, FaultKind.DELAY, FaultKind.SILENCE) for one in ROUTES),
    (FaultKind.FULL_MEMORY, "valkey"),
    (FLUSH, "valkey"),
    *((EVICT, "valkey") for _ in range(3)),
    *((FAIL_OVER, "postgres") for _ in range(3)),
    *(
        (kind, "model")
        for kind in (
            FaultKind.MODEL_CUT,
            FaultKind.MODEL_STALL,
            FaultKind.MODEL_SLOW,
            FaultKind.MODEL_500,
            FaultKind.MODEL_429,
        )
    ),
)


def draw_faults(dice: Random, plans: Sequence[Plan], seconds: float) -> tuple[Happening, ...]:
    """Return the faults in order, most of them soon behind the beginning of a turn.

    Every one is dealt once before one is dealt again; no target has two at a time.
    """
    deck, at, faults = _dealt(dice, CARDS), FIRST_SECONDS, list[Happening]()
    starts = [plan.at_seconds for plan in plans]
    while at < seconds - QUIET_SECONDS:
        kind, target = next(deck)
        begins = next((start for start in starts if start >= at), at) if dice.random() < AIMED else at
        begins += LONGEST_AIM_SECONDS * dice.random() ** 2
        fault = Happening(round(begins, 2), round(dice.uniform(*_lasts(kind, target)), 2), str(kind), target)
        if fault.ends_seconds < seconds - QUIET_SECONDS and not _meets(fault, faults):
            faults.append(fault)
        at += dice.uniform(*FAULT_GAP_SECONDS)
    return tuple(faults)


def _meets(fault: Happening, others: Sequence[Happening]) -> bool:
    return any(other.target == fault.target and other.ends_seconds >= fault.at_seconds for other in others)


def _lasts(kind: str, target: str) -> tuple[float, float]:
    if kind == FaultKind.FREEZE and target in SHELLS:
        return SHELL_FREEZE_SECONDS
    known = {str(one): bounds for one, bounds in LASTS_SECONDS.items()}
    return known.get(kind, SHORT_SECONDS)


def _dealt(dice: Random, cards: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    while True:
        yield from dice.sample(cards, len(cards))


def draw_turns(dice: Random, seconds: float) -> tuple[Plan, ...]:
    """Return the turns in order; those that wait for another one, or enter it, come soon behind it."""
    at, plans = 2.0, list[Plan]()
    while at < seconds - QUIET_SECONDS:
        way = dice.choice(WAYS)
        follows = bool(plans) and way in BEHIND_OTHERS
        before = plans[-1] if follows else None
        begins = before.at_seconds + dice.uniform(*SOON_SECONDS) if before is not None else at
        place = before.conversation if before is not None else dice.randrange(CONVERSATIONS)
        plans.append(
            Plan(
                at_seconds=round(begins, 2),
                key=f"t{len(plans)}",
                conversation=place,
                replica=dice.randrange(len(BACKENDS)),
                words=dice.randrange(3, 16),
                pause_milliseconds=dice.choice((40, 150, 500)),
                call=dice.choice(("none", "none", LOOK_UP)),
                way=way,
                meanwhile=dice.choice(MEANWHILE),
                after_seconds=round(dice.uniform(0.05, 4.0), 2),
            )
        )
        at += dice.uniform(*TURN_GAP_SECONDS)
    return tuple(plans)
