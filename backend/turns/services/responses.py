"""Stored responses of a caller: reading, listing their input items, cancelling and deleting them."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.responses import ItemBody, ResponseStatus, StoredResponse
from backend.conversations.services.conversation_access import ConversationAccess
from backend.identity.domain import Caller
from backend.openai_api.domain.response_object import Ending, ResponseBody
from backend.streams.ports.events import StopSignals
from backend.turns.domain.lanes import lanes_in
from backend.turns.domain.unbegun import unbegun
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import NotFound, TurnRunning, Unavailable

WAIT_SECONDS = 10.0
"""How long a cancellation waits for the turn's end; a provider's connection closes within a fraction of a second."""


LOOK_SECONDS = 5.0
"""How long the events of a turn are followed until its stored status is read again: its process may have died."""

PAUSE_SECONDS = 0.1
"""Between two looks at the status, where no events are kept."""

QUEUED_SECONDS = 0.3
"""Between two looks at a response whose turn waits for its conversation."""

LONGEST_TURN = timedelta(days=1)
"""No turn may last longer (`BACKEND_TURN_TIMEOUT_SECONDS`)."""


@dataclass(frozen=True)
class InputItemPage:
    """A page of input items of a response, and whether more follow it."""

    response: StoredResponse
    items: tuple[ItemBody, ...]
    has_more: bool


class Responses:
    """Serves the responses of a caller's conversations; for who is no member every method raises `NotFound`."""

    def __init__(self, ports: TurnPorts, access: ConversationAccess) -> None:
        self._access = access
        self._ports = ports

    async def find(self, caller: Caller, response_id: str) -> StoredResponse:
        """Return a response as it is now; a running one has the output of its last checkpoint."""
        return await self._access.response(caller, response_id, ConversationRole.READER)

    async def input_items(
        self, caller: Caller, response_id: str, *, after: str | None, limit: int, descending: bool
    ) -> InputItemPage:
        """Return a page of the response's input items.

        Raises:
            NotFound: also when `after` names none of the input items.
        """
        response = await self.find(caller, response_id)
        items = list(reversed(response.input_items) if descending else response.input_items)
        if after is not None:
            place = next((place for place, item in enumerate(items) if item["id"] == after), None)
            if place is None:
                raise NotFound("There is no such item in this response.", param="after")
            items = items[place + 1 :]
        return InputItemPage(response, tuple(items[:limit]), has_more=len(items) > limit)

    async def cancel(self, caller: Caller, response_id: str) -> StoredResponse:
        """Stop a turn on whichever replica runs it, and return the response as it ended, with its output so far.

        A response that has already ended is returned unchanged. A turn whose process died does not end within the
        waiting time: it is returned as it is, and recovery closes it. A turn that waits for its conversation ends
        without having begun.
        """
        response = await self._access.response(caller, response_id, ConversationRole.WRITER)
        if response.status.is_terminal:
            return response
        if (unbegun_end := await self.stop(response)) is not None:
            return unbegun_end
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._wait_for_end(response)
        except (TimeoutError, Unavailable):
            """The stored response is returned, whether it has ended or not."""
        return await self._ports.stored.turns.find(response_id) or response

    async def stop(self, response: StoredResponse) -> StoredResponse | None:
        """Stop a turn on whichever replica runs it, without waiting for its end.

        Return the response of a turn that waited for its conversation, and so ends without having begun.
        """
        if response.status is ResponseStatus.QUEUED:
            ended = unbegun(response, Ending(status=ResponseStatus.CANCELLED), self._ports.clock.now())
            if await self._ports.stored.waiting.withdraw(ended):
                return ended
        await send_stops(self._ports.signals, response.id, response.body)
        return None

    async def stop_left(self, response: StoredResponse) -> None:
        """Stop a turn whose client has left; nobody is there to hear of a failure."""
        await self._ports.background.attempt("stop_turn", partial(self.stop, response))

    async def wait_until_ended(self, response: StoredResponse) -> StoredResponse:
        """Return a response once its turn has ended, whichever replica runs it.

        Raises:
            NotFound: the response was deleted meanwhile.
            Unavailable: the database is away, or the end was not stored in time. Retryable.
        """
        response = await self.wait_until_begun(response)
        waits_until = self._ports.clock.now() + LONGEST_TURN
        while not response.status.is_terminal:
            if self._ports.clock.now() > waits_until:
                raise Unavailable("The turn's end is not known.", retry_after_seconds=1)
            with suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wait_for_end(response)
            await asyncio.sleep(PAUSE_SECONDS)
            found = await self._ports.stored.turns.find(response.id)
            if found is None:
                raise NotFound(f"There is no response '{response.id}'.", param="response_id")
            response = found
        return response

    async def wait_until_begun(self, response: StoredResponse) -> StoredResponse:
        """Return a response once its turn does not wait for its conversation any more.

        Raises:
            NotFound: the response was deleted meanwhile.
        """
        while response.status is ResponseStatus.QUEUED:
            await asyncio.sleep(QUEUED_SECONDS)
            with suppress(Unavailable):
                found = await self._ports.stored.turns.find(response.id)
                if found is None:
                    raise NotFound(f"There is no response '{response.id}'.", param="response_id")
                response = found
        return response

    async def wait_until_begun_or_deleted(self, response: StoredResponse) -> StoredResponse:
        """Return a response as `begun` does; one that was deleted meanwhile as its deletion has ended it."""
        try:
            return await self.wait_until_begun(response)
        except NotFound:
            return unbegun(response, Ending(status=ResponseStatus.CANCELLED), self._ports.clock.now())

    async def delete(self, caller: Caller, response_id: str) -> None:
        """Delete a response, cancelling it first where it runs; its conversation keeps log and items.

        With a joined response its lanes are deleted, which are responses of their own, and the conversation that it
        holds itself, of which nobody else knows.

        Raises:
            PermissionDenied: somebody else asked for it, and the caller does not own the conversation.
        """
        response = await self._access.response(caller, response_id, ConversationRole.WRITER)
        if response.user_id != caller.user_id:
            await self._access.response(caller, response_id, ConversationRole.OWNER)
        response = await self.cancel(caller, response_id)
        lanes = lanes_in(response.body)
        for lane in lanes:
            await self._ports.stored.turns.delete(lane.response_id)
        await self._ports.stored.turns.delete(response_id)
        if lanes:
            with suppress(TurnRunning):
                await self._ports.stored.conversations.delete(response.conversation_id)

    async def _wait_for_end(self, response: StoredResponse) -> None:
        """Read the events to their end, which comes after the end of the turn is stored."""
        async for _ in self._ports.events.read(response.id, response.last_event):
            continue


async def send_stops(signals: StopSignals, response_id: str, body: ResponseBody) -> None:
    """Have a turn stop, and with a joined response its lanes.

    Raises:
        Unavailable: the carrier of signals is away. Retryable.
    """
    for each in (response_id, *(lane.response_id for lane in lanes_in(body))):
        await signals.send(each)
