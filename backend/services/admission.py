"""Whether this process takes new turns."""

from shared.errors import Draining

RETRY_AFTER_SECONDS = 1.0
"""Soon enough for a client that reaches another replica at its next attempt."""


class Admission:
    """One per process: open from the start, closed for good when it drains."""

    def __init__(self) -> None:
        self._accepting = True

    @property
    def accepting(self) -> bool:
        """Whether new turns are taken."""
        return self._accepting

    def close(self) -> None:
        """Refuse new turns from now on; running ones go on."""
        self._accepting = False

    def check(self) -> None:
        """Let a new turn in.

        Raises:
            Draining: this process is shutting down. Retryable, on another replica.
        """
        if not self._accepting:
            raise Draining("The server is shutting down.", retry_after_seconds=RETRY_AFTER_SECONDS)
