"""The event log of running and recently ended turns, and the signals that stop turns."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from backend.openai_api.domain.response_events import LoggedEvent

MOST_RESPONSE_BYTES = 64 * 2**20
"""Room for the events of one response: some 190,000 deltas, or ten of the longest answers of current models.

Events come up to 50 times a second, so that only a model which goes on without end reaches it.
"""

Tenure = Callable[[], Callable[[], bool]]
"""Called where the writing of a response begins; what it returns says whether the lease was held all the time since."""


class EventLog(Protocol):
    """Events of responses, numbered 0, 1, 2 …, kept until their retention ends; a gap shows that some were lost."""

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; their numbers continue those of the last append.

        Raises:
            Unavailable: the log cannot be reached, or the events of the response take more than `MOST_RESPONSE_BYTES`,
                or those of all together more than there is room for. From then on each call raises it, and the log has
                what was appended until then: readers get the rest from the stored response.
        """
        ...

    async def close(self, response_id: str) -> None:
        """Mark the log as complete: readers end after the last event, and its retention begins."""
        ...

    async def cut_off(self, response_id: str) -> bool:
        """Forget the events of a log that lacks its end, whoever writes it, so that all readers find the same.

        For a log whose writer has given up, or is late after the end of its turn was stored. Return False for one that
        is closed, which stays as it is.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    def read(self, response_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Yield events with a number above `after` (-1: from the start), several at once when ready.

        Waits for more until the log is closed; after some seconds in which the log could be read and had no event, it
        yields none, so that the reader can ask elsewhere whether the turn still runs. Ends at once, with nothing, when
        the log is unknown or its retention is over: ask `exists` first.
        """
        ...

    def take_over(self, response_id: str, fence: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Keep all writers with a lower fencing number from appending, then yield what they have appended, and end.

        From then on this process appends with the number `fence`, until it closes or leaves the log. Nothing is yielded
        where no events are kept; earlier writers cannot begin then either.

        Raises:
            Conflict: the log was closed. Nothing can be appended.
            TurnTaken: a writer with a higher fencing number has been here.
        """
        ...

    def leave(self, response_id: str) -> None:
        """Append no more to the log of a response that another process has taken over; readers here get all of it."""
        ...

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        ...

    async def drop(self, response_id: str) -> None:
        """Forget the events now; readers end."""
        ...


class StopSignals(Protocol):
    """Carries signals from any replica to the one that runs a turn; the id of a response asks that its turn stops."""

    async def send(self, name: str) -> None:
        """Send a signal; no effect when nobody waits for it."""
        ...

    async def wait(self, *names: str) -> str:
        """Return the first of these signals that was sent; one sent before the call counts."""
        ...
