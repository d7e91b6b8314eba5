"""Going on with a joined response whose process died or gave it up; its lanes are taken over as any other turn."""

from backend.conversations.domain.leases import TakenTurn
from backend.openai_api.domain.response_events import LoggedEvent
from backend.turns.domain.lanes import JoinedPlan, lanes_in
from backend.turns.domain.turn import BegunJoin, JoinedTurn
from backend.turns.services.turn_assembly import FIRST_EVENTS
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import Conflict, TurnTaken

MAX_TAKEOVERS = 2
"""How often a turn is run again: one that ends each process that runs it must not end them all."""


async def join_again(ports: TurnPorts, taken: TakenTurn) -> JoinedTurn:
    """Return the joined response to go on with.

    Where the events that clients have got of it are lost, or their end was written, or it has been taken over too
    often, it shows no further ones, and is stored when its lanes have ended.

    Raises:
        Unavailable: the database or the event log is away. The call may be repeated.
        TurnTaken: another process has taken the response over since.
    """
    response = taken.response
    events: list[LoggedEvent] = []
    is_open = response.fence <= MAX_TAKEOVERS
    try:
        async for batch in ports.events.take_over(response.id, response.fence):
            events += batch
    except TurnTaken:
        raise
    except Conflict:
        is_open = False
    newest = max(response.last_event, len(events) - 1)
    lanes = [await ports.stored.turns.find(lane.response_id) for lane in lanes_in(response.body)]
    return JoinedTurn(
        response=response.model_copy(update={"body": {**response.body, "output": []}}),
        lanes=tuple(lanes),
        is_stored=True,
        with_results=_with_results(taken),
        begun=BegunJoin(events, newest, goes_on=is_open and response.last_event < max(len(events), FIRST_EVENTS)),
    )


def _with_results(taken: TakenTurn) -> bool:
    try:
        return JoinedPlan.model_validate_json(taken.plan or "").with_results
    except ValueError:
        return False
