"""What must answer for this process to be ready."""

from typing import Protocol


class Probe(Protocol):
    """A part that can be asked whether it is there."""

    async def ping(self) -> None:
        """Ask it something cheap.

        Raises:
            Unavailable: it does not answer. Retryable.
        """
        ...
