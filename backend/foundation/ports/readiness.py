"""The parts that this process depends on, and whether they can be reached."""

from typing import Protocol


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
