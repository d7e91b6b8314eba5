"""What is stored of a turn that waits for its conversation, so that any process can begin it."""

from backend.identity.domain import Caller
from backend.turns.domain.turn_request import TurnRequest
from shared.errors import InvalidRequest
from shared.models.messages import UserMessage
from shared.models.values import Value


class AskedLater(Value):
    """A request for a turn, and who made it.

    `request` is the JSON of the request, with the stored items in the places of those that name them. `labels` are the
    labels of these items by their ids, each encoded as one text. `messages` are what enters a running turn, as its
    model gets it; none where the request may not do that.
    """

    caller: Caller
    request_id: str
    request: str
    labels: dict[str, str]
    messages: tuple[UserMessage, ...] = ()


def request_json(request: TurnRequest) -> str:
    """Write a request as a client would.

    Raises:
        InvalidRequest: it holds text that is no Unicode, such as half a character.
    """
    try:
        # Unions that a function tells apart are written as what they hold.
        return request.model_dump_json(by_alias=True, exclude_none=True, serialize_as_any=True)
    except ValueError as error:
        raise InvalidRequest("A text in the request is not Unicode; send whole characters.") from error
