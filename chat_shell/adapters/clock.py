"""Wall time."""

from datetime import UTC, datetime


class SystemClock:
    """Implements the port `Clock` with the operating system's clock."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return datetime.now(UTC)
