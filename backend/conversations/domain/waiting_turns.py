"""Turns that wait for the conversation that another turn holds."""

from datetime import datetime
from enum import StrEnum

from backend.conversations.domain.responses import ItemBody, StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from shared.models.values import Value

MOST_WAITING = 10
"""How many turns may wait for one conversation."""


class IfRunning(StrEnum):
    """What a turn does whose conversation another turn holds.

    It waits; it has that turn stopped and comes next; or its message enters that turn, where the same user asked for
    it, and else it comes next.
    """

    QUEUE = "queue"
    CANCEL = "cancel"
    STEER = "steer"

    @property
    def comes_next(self) -> bool:
        """Whether it runs before those that were there earlier and merely wait."""
        return self is not IfRunning.QUEUE


class Entered(Value):
    """The message of a waiting turn that has entered another turn, when that one showed so many items of output."""

    response_id: str
    output_count: int
    items: tuple[ItemBody, ...]


class WaitingTurn(Value):
    """A turn that was acknowledged and has not begun.

    `response` is what clients see of it, with the status `queued`. `asked` is what is needed to begin it, for packages
    above. It runs before others of its conversation that have a higher `place`; the store assigns it.
    From `expires_at` on it is not begun any more. `claim` is the Idempotency-Key of its request, where it has one.
    """

    response: StoredResponse
    if_running: IfRunning
    asked: str
    expires_at: datetime
    claim: KeyClaim | None = None

    def enter(self, response_id: str, output_count: int) -> Entered:
        """Return what its message is that enters the turn of a response."""
        return Entered(response_id=response_id, output_count=output_count, items=self.response.input_items)
