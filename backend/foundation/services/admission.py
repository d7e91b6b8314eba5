"""Admission of new turns to this process, shared fairly by their callers."""

from backend.foundation.ports.readiness import Presence
from shared.errors import Draining, Unavailable
from shared.shares import Holder, Lease, SharedBudget

RETRY_AFTER_SECONDS = 1.0
"""How long a refused client waits: its next attempt may reach another replica."""


DEFAULT_MAX_TURNS = 1000


class Admission:
    """Decides whether this process takes new turns: from its start until it shuts down, up to `max_turns` at a time.

    `event_store` watches where the events of turns are kept; it is None where that is the memory of this process.
    """

    def __init__(self, event_store: Presence | None = None, max_turns: int = DEFAULT_MAX_TURNS) -> None:
        self._accepting = True
        self._places = SharedBudget("places for turns", max_turns)
        self._event_store = event_store

    @property
    def accepting(self) -> bool:
        """Say whether new turns are taken."""
        return self._accepting

    @property
    def has_event_store(self) -> bool:
        """Say whether the events of a new turn can be stored."""
        return self._event_store is None or not self._event_store.is_away

    def close(self) -> None:
        """Refuse new turns from now on, and those that wait for a place; running ones go on."""
        self._accepting = False
        self._places.stop_waiting(_refuse_draining())

    def check(self) -> None:
        """Check that a new turn may begin.

        Raises:
            Draining: this process is shutting down. Retryable, on another replica.
            Unavailable: the event store is away. Retryable.
        """
        self.check_open()
        if not self.has_event_store:
            raise Unavailable("The event store is not available.", retry_after_seconds=RETRY_AFTER_SECONDS)

    def place(self, *holders: Holder) -> Lease:
        """Take the place of one turn for those who ask for it.

        Raises:
            Unavailable: all places are taken. Retryable.
            TooManyRequests: one of the holders has their part of them. Retryable.
        """
        place = self._places.lease(*holders)
        place.grow(1)
        return place

    @property
    def is_waited_for(self) -> bool:
        """Whether a turn waits for a place."""
        return self._places.is_waited_for

    async def wait_for_place(self, *holders: Holder) -> Lease:
        """Take the place of a turn that may not be refused, as soon as one is free.

        Raises:
            Draining: this process is shutting down.
        """
        self.check_open()
        return await self._places.wait_for(1, *holders)

    def check_open(self) -> None:
        """Return where nothing but what it depends on may keep this process from taking turns.

        Raises:
            Draining: this process is shutting down.
        """
        if not self._accepting:
            raise _refuse_draining()


def _refuse_draining() -> Draining:
    return Draining("The server is shutting down.", retry_after_seconds=RETRY_AFTER_SECONDS)
