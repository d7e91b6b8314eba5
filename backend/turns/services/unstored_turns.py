"""Stopping a turn that is not stored by its id, while it runs and from any replica."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import orjson

from backend.conversations.domain.responses import ResponseStatus
from backend.conversations.domain.withheld import empty_body
from backend.identity.domain import Caller
from backend.openai_api.domain.client_left import is_unstored_of
from backend.openai_api.domain.response_events import TERMINAL_TYPES, LoggedEvent
from backend.openai_api.domain.response_object import Ending, ResponseBody, build_ended_body
from backend.streams.ports.events import EventLog, StopSignals
from backend.turns.services.responses import WAIT_SECONDS, send_stops
from shared.clock import Clock
from shared.errors import NotFound, Unavailable


class UnstoredTurns:
    """Stops turns that left nothing behind: their ids tell whose they are (`secret`), their events that they run."""

    def __init__(self, events: EventLog, signals: StopSignals, clock: Clock, secret: str) -> None:
        self._events = events
        self._signals = signals
        self._clock = clock
        self._secret = secret

    async def cancel(self, caller: Caller, response_id: str) -> ResponseBody | None:
        """Stop a turn and return its response as it ended; None where the id is none of such a turn of this caller.

        What was said is left out: the connection that asked for the turn has it, and nothing else may keep it.

        Raises:
            NotFound: it runs no more.
            Unavailable: the events cannot be reached, or it has not ended in time. Retryable.
        """
        if not is_unstored_of(self._secret, caller, response_id):
            return None
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return empty_body(await self._stop(response_id))
        except TimeoutError as error:
            raise Unavailable("The turn has not ended yet.", retry_after_seconds=1) from error

    async def _stop(self, response_id: str) -> ResponseBody:
        begun: ResponseBody = {}
        newest: LoggedEvent | None = None
        stream = cast(AsyncGenerator[tuple[LoggedEvent, ...]], self._events.read(response_id, -1))
        async with aclosing(stream) as batches:
            async for batch in batches:
                if batch and newest is None:
                    begun = orjson.loads(batch[0].body)["response"]
                    await send_stops(self._signals, response_id, begun)
                newest = batch[-1] if batch else newest
        if newest is None:
            raise NotFound(f"There is no response '{response_id}'.", param="response_id")
        if newest.type in TERMINAL_TYPES:
            return orjson.loads(newest.body)["response"]
        # Its events were dropped with its end, when nobody read them any more.
        return build_ended_body(begun, (), Ending(status=ResponseStatus.CANCELLED), int(self._clock.now().timestamp()))
