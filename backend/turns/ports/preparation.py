"""What starting a turn needs of everything that resolves and checks it."""

from typing import Protocol

from backend.conversations.domain.responses import StoredResponse
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.queued_request import QueuedRequest
from backend.turns.domain.turn import StartableTurn


class TurnPreparation(Protocol):
    """Prepares turns; it stores nothing."""

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> StartableTurn:
        """Prepare a turn that is asked for now.

        Raises:
            BallastError: the turn cannot begin, for whatever reason `StartTurn` names.
        """
        ...

    async def again(self, later: QueuedRequest, waited: StoredResponse) -> StartableTurn:
        """Prepare a turn whose response has waited, with the rights that its caller has today.

        Raises:
            BallastError: as of a turn that is asked for now.
        """
        ...
