"""Finding a response for the one it belongs to."""

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.identity.domain import Caller
from shared.errors import NotFound


async def owned_response(turns: TurnStore, caller: Caller, response_id: str) -> StoredResponse:
    """Return a response of this caller.

    Raises:
        NotFound: there is none, or it is somebody else's: the two are not told apart.
    """
    found = await turns.find(response_id)
    if found is None or (found.tenant, found.user_id) != (caller.tenant, caller.user_id):
        raise NotFound(f"There is no response '{response_id}'.", param="response_id")
    return found
