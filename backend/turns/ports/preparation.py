"""What starting a turn needs of everything that resolves and checks it."""

from typing import Protocol

from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.turn import StartableTurn


class TurnPreparation(Protocol):
    """Prepares turns; it stores nothing."""

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> StartableTurn:
        """Prepare a turn that is asked for now.

        Raises:
            BallastError: the turn cannot begin, for whatever reason `StartTurn` names.
        """
        ...

    async def again(self, waiting: WaitingTurn) -> StartableTurn:
        """Prepare a turn that has waited, with the rights that its caller has today.

        Raises:
            BallastError: as of a turn that is asked for now.
        """
        ...
