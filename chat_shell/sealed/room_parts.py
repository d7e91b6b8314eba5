"""The collaborators of the sealed room, and its timeouts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic

from chat_shell.sealed.backend_wire import SealedBackend
from chat_shell.sealed.circuit import CanaryCircuit
from chat_shell.sealed.latency_padding import LatencyPadding
from chat_shell.sealed.room_observer import RoomObserver
from chat_shell.sealed.secondary_model import SecondaryModel
from chat_shell.sealed.verdicts import CaseT, Gate

OUTCOME_TIMEOUT_SECONDS = 5.0
"""Time for recording the outcome, which comes after the summary's own time, because a timeout is recorded too."""


@dataclass(frozen=True, slots=True)
class RoomTimes:
    """How long a safe summary may take, and how long the recording of its outcome after it."""

    summary_seconds: float
    outcome_seconds: float = OUTCOME_TIMEOUT_SECONDS

    @property
    def longest_seconds(self) -> float:
        """The longest that `SealedRoom.summarise` takes."""
        return self.summary_seconds + self.outcome_seconds


@dataclass(frozen=True, slots=True)
class RoomParts(Generic[CaseT]):
    """The room's collaborators. `now` is the clock, `new_token` makes canaries; `latency_padding` is this room's."""

    backend: SealedBackend
    model: SecondaryModel
    gate: Gate[CaseT]
    circuit: CanaryCircuit
    observer: RoomObserver
    now: Callable[[], datetime]
    new_token: Callable[[], str]
    latency_padding: LatencyPadding
