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

FIRST_SECONDS = 8.0
FAULT_GAP_SECONDS = (8.0, 30.0)
TURN_GAP_SECONDS = (3.0, 18.0)
CONVERSATIONS = 5


class Happening(NamedTuple):
    """A fault, by the name of its kind."""

    at_seconds: float
    lasts_seconds: float
    kind: str
    target: str


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


WAYS = ("stream", "stream", "stream", "plain", "background", "keyed", "queue", "queue", "steer", "cancel_running")
MEANWHILE = ("", "", "", "leave", "second", "cancel", "delete")

CARDS: tuple[tuple[str, str], ...] = (
    *((kind, one) for kind in (FaultKind.KILL, FaultKind.FREEZE) for one in (*BACKENDS, *SHELLS, *STORES)),
    *((FaultKind.FREEZE, one) for one in (*BACKENDS, *SHELLS)),
    *((kind, one) for kind in (FaultKind.REFUSE, FaultKind.CUT, FaultKind.DELAY, FaultKind.SILENCE) for one in ROUTES),
    (FaultKind.FULL_MEMORY, "valkey"),
    (FLUSH, "valkey"),
    *((EVICT, "valkey") for _ in range(3)),
    *((FAIL_OVER, "postgres") for _ in range(2)),
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


def draw_faults(dice: Random, seconds: float) -> tuple[Happening, ...]:
    """Return the faults in order; every one is dealt once before one is dealt again."""
    deck, at, faults = _dealt(dice, CARDS), FIRST_SECONDS, list[Happening]()
    while at < seconds - QUIET_SECONDS:
        kind, target = next(deck)
        lasts = round(dice.uniform(*_lasts(kind)), 2)
        if at + lasts < seconds - QUIET_SECONDS:
            faults.append(Happening(round(at, 2), lasts, str(kind), target))
        at += dice.uniform(*FAULT_GAP_SECONDS)
    return tuple(faults)


def _lasts(kind: str) -> tuple[float, float]:
    known = {str(one): bounds for one, bounds in LASTS_SECONDS.items()}
    return known.get(kind, SHORT_SECONDS)


def _dealt(dice: Random, cards: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    while True:
        yield from dice.sample(cards, len(cards))


def draw_turns(dice: Random, seconds: float) -> tuple[Plan, ...]:
    """Return the turns in order."""
    at, plans = 2.0, list[Plan]()
    while at < seconds - QUIET_SECONDS:
        plans.append(
            Plan(
                at_seconds=round(at, 2),
                key=f"t{len(plans)}",
                conversation=dice.randrange(CONVERSATIONS),
                replica=dice.randrange(len(BACKENDS)),
                words=dice.randrange(3, 16),
                pause_milliseconds=dice.choice((40, 150, 500)),
                call=dice.choice(("none", "none", LOOK_UP)),
                way=dice.choice(WAYS),
                meanwhile=dice.choice(MEANWHILE),
                after_seconds=round(dice.uniform(0.05, 4.0), 2),
            )
        )
        at += dice.uniform(*TURN_GAP_SECONDS)
    return tuple(plans)


