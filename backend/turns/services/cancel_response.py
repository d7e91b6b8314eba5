"""Stopping a turn, whichever replica runs it."""

import asyncio

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.services.withheld_turns import owned_response
from backend.identity.domain import Caller
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import Unavailable

WAIT_SECONDS = 10.0
"""For a turn to end after the signal; a provider's connection closes within a fraction of a second."""


class CancelResponse:
    """Cancels turns; doing it twice, or after the end, changes nothing."""

    def __init__(self, ports: TurnPorts, wait_seconds: float = WAIT_SECONDS) -> None:
        self._ports = ports
        self._wait_seconds = wait_seconds

    async def __call__(self, caller: Caller, response_id: str) -> StoredResponse:
        """Stop a turn and return it as it ended; what was said is kept.

        A turn whose process is gone does not end: it is returned as it is, and closed at the next start.

        Raises:
            NotFound: there is none, or it is somebody else's.
        """
        response = await owned_response(self._ports.turns, caller, response_id)
        if response.status.is_terminal:
            return response
        await self._ports.signals.send(response_id)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._end_of(response)
        except (TimeoutError, Unavailable):
            """What is stored is the answer, whether it has ended or not."""
        return await self._ports.turns.find(response_id) or response

    async def _end_of(self, response: StoredResponse) -> None:
        """Read its events to their end, which comes after the end is stored."""
        async for _ in self._ports.events.read(response.id, response.last_event):
            continue
