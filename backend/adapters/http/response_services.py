"""The use cases of turns, behind the HTTP door."""

from dataclasses import dataclass

from backend.services.cancel_turn import CancelTurn
from backend.services.follow_turn import FollowTurn
from backend.services.read_prompts import ReadPrompts
from backend.services.read_responses import ReadResponses
from backend.services.start_turn import StartTurn
from backend.services.turn_registry import TurnRegistry
from backend.services.withheld_turns import WithheldTurns


@dataclass(frozen=True)
class ResponseServices:
    """What the routes of responses call; the application enters and leaves the registry."""

    start: StartTurn
    follow: FollowTurn
    cancel: CancelTurn
    read: ReadResponses
    prompts: ReadPrompts
    registry: TurnRegistry
    withheld: WithheldTurns
