"""Wall time: a port, so that tests choose the hour and a turn can be replayed."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return datetime.now(UTC)
