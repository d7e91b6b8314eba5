"""Which fault happens when: a value made from a seed, so that the same seed brings the same faults."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class FaultKind(StrEnum):
    """What is done to a target."""

    KILL = "kill"  # SIGKILL; started again when the fault is over
    FREEZE = "freeze"  # SIGSTOP and SIGCONT
    REFUSE = "refuse"  # connections are cut, new ones refused
    CUT = "cut"  # connections are cut once
    DELAY = "delay"  # every piece arrives late
    SILENCE = "silence"  # nothing passes, nothing breaks
    FAIL_OVER = "fail_over"  # SIGKILL; what was committed in the last second is lost
    FULL_MEMORY = "full_memory"
    FULL_DISK = "full_disk"
    FROZEN_DISK = "frozen_disk"  # writes wait
    MODEL_CUT = "model_cut"
    MODEL_END = "model_end"  # ends properly, without a finish reason
    MODEL_STALL = "model_stall"
    MODEL_COMMENTS = "model_comments"  # stalls, and only comments come
    MODEL_GARBAGE = "model_garbage"
    MODEL_SLOW = "model_slow"
    MODEL_500 = "model_500"
    MODEL_429 = "model_429"


SERVICES = ("backend_1", "backend_2", "chat_shell_1", "chat_shell_2")
STORES = ("postgres", "valkey")
LINKS = ("to_postgres", "to_valkey", "to_chat_shell_grpc", "to_chat_shell_http", "to_backend", "to_model")
MODEL_FAULTS = tuple(kind for kind in FaultKind if kind.startswith("model_"))
DISK_FAULTS = (FaultKind.FULL_DISK, FaultKind.FROZEN_DISK)

FIRST_SECONDS = 2.0
GAP_SECONDS = (1.5, 5.0)
SHORT_SECONDS = (0.5, 4.0)
LONG_SECONDS = (2.0, 20.0)
LASTS_SECONDS = {
    FaultKind.FREEZE: LONG_SECONDS,
    FaultKind.SILENCE: LONG_SECONDS,
    FaultKind.FULL_MEMORY: LONG_SECONDS,
    FaultKind.CUT: (0.0, 0.0),
}
"""How long a fault lasts, where it is not short."""


@dataclass(frozen=True, order=True)
class Fault:
    """One fault; the times are seconds from the beginning of the run."""

    at_seconds: float
    lasts_seconds: float
    kind: FaultKind
    target: str

    @property
    def ends_seconds(self) -> float:
        """When it is over."""
        return self.at_seconds + self.lasts_seconds


def every_fault(*, with_disk: bool, with_failover: bool = True) -> tuple[tuple[FaultKind, str], ...]:
    """Return what can be done to what."""
    links = (FaultKind.REFUSE, FaultKind.CUT, FaultKind.DELAY, FaultKind.SILENCE)
    return (
        *product((FaultKind.KILL, FaultKind.FREEZE), (*SERVICES, *STORES)),
        *product(links, LINKS),
        (FaultKind.FULL_MEMORY, "valkey"),
        *((kind, "postgres") for kind in DISK_FAULTS if with_disk),
        *([(FaultKind.FAIL_OVER, "postgres")] if with_failover else ()),
        *((kind, "model") for kind in MODEL_FAULTS),
    )


def make_schedule(seed: int, seconds: float, *, with_disk: bool, with_failover: bool = True) -> tuple[Fault, ...]:
    """Return the faults of a run in order; all are over when it ends, and no target has two at a time.

    Every fault is dealt once before one is dealt again.
    """
    dice = random.Random(seed)
    deck = _dealt(dice, every_fault(with_disk=with_disk, with_failover=with_failover))
    faults: list[Fault] = []
    at = FIRST_SECONDS
    while at < seconds:
        kind, target = next(deck)
        fault = Fault(round(at, 2), round(dice.uniform(*LASTS_SECONDS.get(kind, SHORT_SECONDS)), 2), kind, target)
        if fault.ends_seconds < seconds and not _meets(fault, faults):
            faults.append(fault)
        at += dice.uniform(*GAP_SECONDS)
    return tuple(faults)


def _dealt(dice: random.Random, cards: Sequence[tuple[FaultKind, str]]) -> Iterator[tuple[FaultKind, str]]:
    while True:
        yield from dice.sample(cards, len(cards))


def _meets(fault: Fault, others: Sequence[Fault]) -> bool:
    return any(other.target == fault.target and other.ends_seconds >= fault.at_seconds for other in others)
