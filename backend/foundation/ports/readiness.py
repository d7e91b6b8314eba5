"""The parts that this process depends on: whether they can be reached, who hears of failures, and claims of keys."""

from datetime import datetime
from typing import Protocol

from backend.foundation.domain.idempotency import KeyClaim


class Probe(Protocol):
    """A part that can be asked whether it does its work."""

    async def check_writable(self) -> None:
        """Write something small.

        Raises:
            Unavailable: it does not answer or does not take writes. Retryable.
        """
        ...


class Presence(Protocol):
    """A part that is watched all the time, such as Redis."""

    @property
    def is_away(self) -> bool:
        """Whether it has been silent for so long that nothing which needs it should be begun; costs nothing to ask."""
        ...


class FailureObserver(Protocol):
    """Receives the failures of background work; its method must not raise and must not block."""

    def background_failed(self, task: str, error: BaseException) -> None:
        """A step of this task failed; it is one of a closed list of names, and holds nothing of a user."""
        ...


class ClaimStore(Protocol):
    """Finds claims by their ids."""

    async def find(self, claim_id: str) -> KeyClaim | None:
        """Return a stored claim, an expired one too, or None."""
        ...

    async def forget(self, before: datetime, most: int) -> int:
        """Delete up to `most` claims from before an instant; return how many it were."""
        ...
