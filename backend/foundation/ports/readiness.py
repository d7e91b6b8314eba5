"""What this process depends on, and whether it is there."""

from typing import Protocol


class Probe(Protocol):
    """A part that can be asked whether it is there."""

    async def ping(self) -> None:
        """Ask it something cheap.

        Raises:
            Unavailable: it does not answer. Retryable.
        """
        ...


class Presence(Protocol):
    """A part that is watched all the time."""

    @property
    def is_away(self) -> bool:
        """Whether it has been silent for so long that nothing which needs it should be begun; costs nothing to ask."""
        ...
