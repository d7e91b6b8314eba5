"""Whether this process takes new turns."""

from backend.foundation.ports.readiness import Presence
from shared.errors import Draining, Unavailable

RETRY_AFTER_SECONDS = 1.0
"""Soon enough for a client that reaches another replica at its next attempt."""


class Admission:
    """One per process: open from the start, closed for good when it drains.

    `event_store` is where the events of turns go; None: it is in this process.
    """

    def __init__(self, event_store: Presence | None = None) -> None:
        self._accepting = True
        self._event_store = event_store

    @property
    def accepting(self) -> bool:
        """Whether new turns are taken."""
        return self._accepting

    @property
    def has_event_store(self) -> bool:
        """Whether the events of a new turn have somewhere to go."""
        return self._event_store is None or not self._event_store.is_away

    def close(self) -> None:
        """Refuse new turns from now on; running ones go on."""
        self._accepting = False

    def check(self) -> None:
        """Let a new turn in.

        Raises:
            Draining: this process is shutting down. Retryable, on another replica.
            Unavailable: the event store is away. Retryable.
        """
        self.check_open()
        if not self.has_event_store:
            raise Unavailable("The event store is not available.", retry_after_seconds=RETRY_AFTER_SECONDS)

    def check_open(self) -> None:
        """Return where nothing but what it depends on may keep this process from taking turns.

        Raises:
            Draining: this process is shutting down.
        """
        if not self._accepting:
            raise Draining("The server is shutting down.", retry_after_seconds=RETRY_AFTER_SECONDS)
