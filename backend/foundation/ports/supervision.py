"""The port through which background work reports to an operator."""

from typing import Protocol


class FailureObserver(Protocol):
    """Receives the failures of background work; its method must not raise and must not block."""

    def background_failed(self, task: str, error: BaseException) -> None:
        """A step of this task failed; it is one of a closed list of names, and holds nothing of a user."""
        ...
