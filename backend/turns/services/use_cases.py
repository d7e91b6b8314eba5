"""The use cases of turns, as one value for the application and the HTTP routes."""

from dataclasses import dataclass

from backend.conversations.domain.passed_over import PassedOver
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import Caller
from backend.limits.services.turn_rates import TurnRates
from backend.openai_api.domain.client_left import DisconnectPolicy
from backend.openai_api.domain.turn_request import TurnRequest
from backend.streams.services.follow_events import FollowEvents
from backend.streams.services.reader_rights import RightsOfReaders
from backend.turns.domain.queued_request import AcknowledgedTurn
from backend.turns.domain.quiet_pace import QuietPace
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.compact_input import CompactInput
from backend.turns.services.count_input import CountInput
from backend.turns.services.lanes.start_lanes import StartLanes
from backend.turns.services.queue.begin_waiting import BeginWaiting
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.responses import Responses
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_registry import TurnRegistry
from backend.turns.services.unstored_turns import UnstoredTurns


@dataclass(frozen=True)
class TurnServices:
    """What the routes of responses and models call; the application enters and leaves the registry.

    `pace` is that of the streams of restricted turns; without one they are sent as any other.
    """

    start_one: StartTurn
    start_lanes: StartLanes
    waiting: BeginWaiting
    count: CountInput
    compact: CompactInput
    follow: FollowEvents
    responses: Responses
    models: ModelNames
    registry: TurnRegistry
    withheld: WithheldText
    cited: CitedDocuments
    rights: RightsOfReaders
    rates: TurnRates
    unstored: UnstoredTurns
    on_disconnect: DisconnectPolicy
    strict_requests: bool = False
    pace: QuietPace | None = None

    async def start(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None = None
    ) -> RunningTurn | AcknowledgedTurn:
        """Start a turn, or a lane for each of several models; see `StartTurn`."""
        use_case = self.start_one if request.models is None else self.start_lanes
        return await use_case(caller, request, request_id, claim)

    def collect_passed_over(self) -> PassedOver | None:
        """Return what collects what is passed over in a request; None where everything unknown is refused."""
        return None if self.strict_requests else PassedOver()
