"""A clock that stands until it is moved."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Starts at a fixed instant."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the instant it stands at."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on."""
        self._now += timedelta(seconds=seconds)


class Stopwatch:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds
