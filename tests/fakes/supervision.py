"""A supervisor that writes down what failed and pauses as short as it can."""

from backend.foundation.services.supervision import Supervisor


class RecordingFailures:
    """Keeps the failures of background work."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, BaseException]] = []

    def background_failed(self, task: str, error: BaseException) -> None:
        self.failures.append((task, error))


def make_supervisor(failures: RecordingFailures | None = None) -> Supervisor:
    """Return a supervisor that tries again at once."""
    return Supervisor(failures or RecordingFailures(), jitter=lambda: 0.0, first_pause_seconds=0.0)
