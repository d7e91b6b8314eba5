"""The route of the Model Context Protocol, over streamable HTTP and without sessions."""

from typing import Annotated

import orjson
from fastapi import Depends, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from backend.foundation.domain.json_objects import JsonText, decode_in_steps
from backend.foundation.http.json_body import check_media_type, new_router, read_json
from backend.foundation.http.services import OptionsDep, service_of
from backend.foundation.services.steps import in_steps
from backend.identity.http.caller import CallerDep
from backend.lookups.chosen import Exchange, McpLibrary
from backend.lookups.services.use_cases import LookupServices
from shared.errors import InvalidRequest, PayloadTooLarge, PermissionDenied
from shared.models.json_bounds import JsonBounds

MAX_MESSAGE_BYTES = 1_048_576
MESSAGE_BOUNDS = JsonBounds(values=1024, depth=64, string_bytes=MAX_MESSAGE_BYTES, outside_bytes=262_144)
"""A message holds the arguments of one call: with these bounds the library reads it in a few milliseconds."""

JSON, EVENT_STREAM = "application/json", "text/event-stream"
_PARSE_ERROR = -32700

router = new_router("Model Context Protocol")


async def _allowed_origin(request: Request, options: OptionsDep) -> None:
    """Refuse pages of other origins, as the protocol demands against DNS rebinding; programs send no `Origin`."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in options.origins:
        raise PermissionDenied("This Origin may not call /mcp; the operator lists those that may.", param="Origin")


ServicesDep = Annotated[LookupServices, Depends(service_of(LookupServices))]
LibraryDep = Annotated[McpLibrary, Depends(service_of(McpLibrary))]


@router.post(
    "/mcp",
    summary="Exchange a message of the Model Context Protocol",
    response_class=Response,
    dependencies=[Depends(_allowed_origin)],
    responses={200: {"description": "The answer", "content": {JSON: {}, EVENT_STREAM: {}}}, 202: {"description": "-"}},
    openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": {"type": "object"}}}}},
)
async def exchange_message(request: Request, caller: CallerDep, services: ServicesDep, library: LibraryDep) -> Response:
    """Answer one JSON-RPC message: tools and resources over the knowledge bases that the caller may use."""
    check_media_type(request)
    accepted = _accepted(request)
    text = await read_json(request, MESSAGE_BOUNDS)
    if len(text.raw) > MAX_MESSAGE_BYTES:
        raise PayloadTooLarge(f"A message is larger than {MAX_MESSAGE_BYTES} bytes.")
    refusal = await _refusal_of(text)
    if refusal is not None:
        return refusal
    exchange = await library.exchange(services, caller, request.scope["state"]["request_id"])
    return _McpAnswer(exchange, bytes(text.raw), as_events=accepted == EVENT_STREAM)


def _accepted(request: Request) -> str:
    """Return the form of the answer: JSON, or an event stream for a client that accepts nothing else."""
    given = request.headers.get("accept") or "*/*"
    kinds = {part.partition(";")[0].strip().lower() for part in given.split(",")}
    if kinds & {"*/*", "application/*", JSON}:
        return JSON
    if kinds & {"text/*", EVENT_STREAM}:
        return EVENT_STREAM
    raise HTTPException(406, f"Accept: must name {JSON} or {EVENT_STREAM}.")


async def _refusal_of(text: JsonText) -> Response | None:
    """Return the error of JSON-RPC for what is no JSON object, or holds text that no other part of this API takes."""
    try:
        await in_steps(decode_in_steps(text))
    except InvalidRequest as error:
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": _PARSE_ERROR, "message": error.message}}
        return Response(orjson.dumps(body), 400, media_type=JSON)
    return None


class _McpAnswer(Response):
    """Lets the library answer a message that has been read already."""

    def __init__(self, exchange: Exchange, message: bytes, *, as_events: bool) -> None:
        self.status_code = 200
        self.background = None
        self._exchange = exchange
        self._message = message
        self._as_events = as_events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        is_read = False

        async def receive_message() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": self._message, "more_body": False}

        # The library takes JSON alone, and refuses a client that does not name it.
        accepting = [(name, value) for name, value in scope["headers"] if name not in (b"accept", b"content-type")]
        headers = [*accepting, (b"accept", JSON.encode()), (b"content-type", JSON.encode())]
        send_answer = _as_event_stream(send) if self._as_events else _with_plain_status(send)
        await self._exchange({**scope, "headers": headers}, receive_message, send_answer)


def _with_plain_status(send: Send) -> Send:
    """Return what sends the status as a number, as the access log and its counters know it: the library names it."""

    async def send_plain(message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        await send({**message, "status": int(message["status"])} if is_start else message)

    return send_plain


def _as_event_stream(send: Send) -> Send:
    """Return what sends a whole JSON answer as the one event of a stream; other answers stay as they are."""
    start: Message | None = None
    send = _with_plain_status(send)

    async def send_event(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] == 200:
            start = message
        elif start is not None:
            await send(
                {**start, "headers": [(b"content-type", EVENT_STREAM.encode()), (b"cache-control", b"no-store")]}
            )
            await send({**message, "body": b"event: message\ndata: %b\n\n" % message["body"]})
            start = None
        else:
            await send(message)

    return send_event
