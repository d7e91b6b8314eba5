"""Stored responses: reading, listing what went in, deleting."""

from dataclasses import dataclass

from backend.conversations.domain.responses import ItemBody, StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.conversations.services.withheld_turns import owned_response
from backend.identity.domain import Caller
from backend.turns.services.cancel_response import CancelResponse
from shared.errors import NotFound


@dataclass(frozen=True)
class InputItemPage:
    """A page of input items, and whether there are more behind it."""

    items: tuple[ItemBody, ...]
    has_more: bool


class ReadResponses:
    """The responses of a caller; somebody else's is not found."""

    def __init__(self, turns: TurnStore, cancel: CancelResponse) -> None:
        self._turns = turns
        self._cancel = cancel

    async def find(self, caller: Caller, response_id: str) -> StoredResponse:
        """Return a response as it is now; of a running one, what it had said at the last checkpoint.

        Raises:
            NotFound: there is none, or it is somebody else's.
        """
        return await owned_response(self._turns, caller, response_id)

    async def input_items(
        self, caller: Caller, response_id: str, *, after: str | None, limit: int, descending: bool
    ) -> InputItemPage:
        """Return a page of what went in.

        Raises:
            NotFound: no such response, or `after` names none of its input items.
        """
        response = await self.find(caller, response_id)
        items = list(reversed(response.input_items) if descending else response.input_items)
        if after is not None:
            place = next((place for place, item in enumerate(items) if item["id"] == after), None)
            if place is None:
                raise NotFound("There is no such item in this response.", param="after")
            items = items[place + 1 :]
        return InputItemPage(tuple(items[:limit]), has_more=len(items) > limit)

    async def delete(self, caller: Caller, response_id: str) -> None:
        """Delete a response, which is cancelled first where it runs; the conversation keeps what was said.

        Raises:
            NotFound: there is none, or it is somebody else's.
        """
        await self._cancel(caller, response_id)
        await self._turns.delete(response_id)
