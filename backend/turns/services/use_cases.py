"""The use cases of turns, as one value for the application and the HTTP routes."""

from dataclasses import dataclass

from backend.conversations.services.withheld_turns import WithheldText
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.follow_events import FollowEvents
from backend.turns.services.model_catalogue import ModelCatalogue
from backend.turns.services.responses import Responses
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_registry import TurnRegistry


@dataclass(frozen=True)
class TurnServices:
    """What the routes of responses and models call; the application enters and leaves the registry."""

    start: StartTurn
    follow: FollowEvents
    responses: Responses
    models: ModelCatalogue
    registry: TurnRegistry
    withheld: WithheldText
    cited: CitedDocuments
