"""The port for wall-clock time, so that a test can set the time and a turn can be replayed."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of wall-clock time."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return datetime.now(UTC)
