"""Stream a turn as server-sent events. When the client disconnects, the turn is cancelled."""

import asyncio
from collections.abc import Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chat_shell.servers.http.errors import error_response
from chat_shell.turns.services.turn_service import TurnService
from shared.errors import BallastError
from shared.message_size import HEARTBEAT_KEY
from shared.models.events import (
    NEWER_EVENTS,
    NEWER_EVENTS_HEADER,
    REMINDERS_HEADER,
    CitationAdded,
    ExecutionEvent,
    FunctionCallDelta,
    ModelCallFinished,
    ModelCallStarted,
    SearchFinished,
)
from shared.models.execution import ExecutionRequest

HEARTBEAT = b": heartbeat\n\n"
DONE = b"data: [DONE]\n\n"


class TurnResponse(Response):
    """Streams the events of a turn; an error before the first event becomes an ordinary error response.

    `at_end` is called when the turn has ended, whatever ended it.
    """

    media_type = "text/event-stream"

    def __init__(
        self, turns: TurnService, request: ExecutionRequest, heartbeat_seconds: float, at_end: Callable[[], None]
    ) -> None:
        self.status_code = 200
        self.background = None
        told = {HEARTBEAT_KEY: str(int(1000 * heartbeat_seconds))}
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no", **told})
        self._turns = turns
        self._request = request
        self._heartbeat_seconds = heartbeat_seconds
        self._at_end = at_end
        self._frame_of = frame_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the turn ends or the client disconnects."""
        self._frame_of = _frames_for(dict(scope["headers"]))
        try:
            async with asyncio.TaskGroup() as group:
                streaming = group.create_task(self._stream(scope, receive, send))
                listening = group.create_task(_wait_for_disconnect(receive))
                listening.add_done_callback(lambda _: streaming.cancel())
                streaming.add_done_callback(lambda _: listening.cancel())
        finally:
            self._at_end()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._turns.open(self._request) as events:
                ready = await events.take()
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                while ready:
                    await _send_body(send, b"".join(map(self._frame_of, ready)))
                    ready = await events.take_beating(lambda: _send_body(send, HEARTBEAT), self._heartbeat_seconds)
                await _send_body(send, DONE)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except BallastError as error:
            await error_response(error)(scope, receive, send)


def frame_of(event: ExecutionEvent) -> bytes:
    """Write one event as a frame."""
    return f"event: {event.type}\ndata: {event.model_dump_json()}\n\n".encode()


def _frames_for(headers: Mapping[bytes, bytes]) -> Callable[[ExecutionEvent], bytes]:
    """Return what writes events for a caller, who knows of the newer fields what its headers say."""
    knows_reminders, knows_newer = (name.encode() in headers for name in (REMINDERS_HEADER, NEWER_EVENTS_HEADER))
    knows_diagnoses = headers.get(NEWER_EVENTS_HEADER.encode()) == NEWER_EVENTS.encode()
    if knows_reminders and knows_diagnoses:
        return frame_of

    def encode_known(event: ExecutionEvent) -> bytes:
        if isinstance(event, ModelCallStarted) and not knows_reminders:
            event = event.model_copy(update={"reminder": ""})
        elif isinstance(event, FunctionCallDelta) and not knows_newer:
            return b""
        elif isinstance(event, ModelCallFinished) and not knows_diagnoses:
            event = event.model_copy(update={"cache_diagnosis": ""} if knows_newer else _UNKNOWN_OF_END)
        elif isinstance(event, CitationAdded | SearchFinished) and not knows_diagnoses:
            event = _without_places(event)
        return frame_of(event)

    return encode_known


def _without_places(event: CitationAdded | SearchFinished) -> ExecutionEvent:
    if isinstance(event, CitationAdded):
        return event.model_copy(update={"place": None})
    results = tuple(result.model_copy(update={"place": None}) for result in event.results)
    return event.model_copy(update={"results": results})


_UNKNOWN_OF_END = {"cache_diagnosis": "", "left_out": ()}


async def _send_body(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
