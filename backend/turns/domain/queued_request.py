"""The stored request of a turn that waits for its conversation, so that any process can begin it."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from shared.errors import InternalError, InvalidRequest
from shared.models.messages import TextPart, UserMessage
from shared.models.values import Value

MOST_STEERING_PARTS = 500
MOST_STEERING_CHARACTERS = 4_000_000
"""Together they are read within some 20 ms, during which the event loop does nothing else."""


class AcknowledgedTurn(NamedTuple):
    """A turn that waits for its conversation; `steered` is the one that its message is to enter, as it is now."""

    response: StoredResponse
    steered: StoredResponse | None


def name_steer_signal(response_id: str, entered_count: int) -> str:
    """Return the name of the signal by which a turn that so many messages have entered hears of another one."""
    return f"{response_id}/{entered_count}"


def name_queued_signal(response_id: str) -> str:
    """Return the name of the signal by which a turn hears that others wait for its end."""
    return f"{response_id}/queued"


class QueuedRequest(Value):
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


def write_queued(later: QueuedRequest) -> str:
    """Write a request with all that belongs to it: its JSON stands behind a line with the rest, as it is.

    So it is read without being parsed, whatever its size.
    """
    return f"{later.model_copy(update={'request': ''}).model_dump_json()}\n{later.request}"


def read_queued(stored: str) -> QueuedRequest:
    """Read what `write_queued` wrote.

    Raises:
        ValueError: it cannot be read.
    """
    rest, _, request = stored.partition("\n")
    return QueuedRequest.model_validate_json(rest).model_copy(update={"request": request})


def read_waiting(waiting: WaitingTurn) -> QueuedRequest:
    """Read what is stored of a waiting turn.

    Raises:
        InternalError: it cannot be read; another release may have stored it.
    """
    try:
        return read_queued(waiting.asked)
    except ValueError as error:
        raise InternalError("The request of this turn cannot be read any more.") from error


def check_may_enter(messages: Sequence[UserMessage]) -> None:
    """Check that messages are short enough to enter a running turn: between two model calls they are read at once.

    Raises:
        InvalidRequest: they are not.
    """
    contents = [message.content for message in messages]
    parts = [part for each in contents if not isinstance(each, str) for part in each]
    texts = [each for each in contents if isinstance(each, str)]
    texts += [part.text if isinstance(part, TextPart) else part.url for part in parts]
    if len(texts) > MOST_STEERING_PARTS or sum(map(len, texts)) > MOST_STEERING_CHARACTERS:
        raise InvalidRequest(
            f"What enters a running turn has at most {MOST_STEERING_PARTS} parts and {MOST_STEERING_CHARACTERS:,} "
            "characters, those of images included; give less, or let it queue.",
            param="input",
        )


def request_json(request: TurnRequest) -> str:
    """Write a request as a client would, without what concerns its connection alone.

    Raises:
        InvalidRequest: it holds text that is no Unicode, such as half a character.
    """
    try:
        # Unions that a function tells apart are written as what they hold.
        return request.model_dump_json(
            by_alias=True, exclude_none=True, exclude={"stream_options"}, serialize_as_any=True
        )
    except ValueError as error:
        raise InvalidRequest("A text in the request is not Unicode; send whole characters.") from error
