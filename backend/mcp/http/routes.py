"""The route of the Model Context Protocol, over streamable HTTP and without sessions."""

from typing import Annotated, Any

import orjson
from fastapi import Depends, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from backend.foundation.domain.json_objects import JsonText, decode_cooperatively
from backend.foundation.http.json_body import check_media_type, new_router, read_json
from backend.foundation.http.services import OptionsDep, service_of
from backend.foundation.services.steps import run_cooperatively
from backend.identity.http.caller import CallerDep
from backend.mcp.chosen import McpLibrary, MessageAnswer
from backend.mcp.services.lookups import Lookups
from shared.errors import InvalidRequest, PayloadTooLarge, PermissionDenied
from shared.models.json_bounds import JsonBounds
from shared.models.values import JsonObject

MAX_MESSAGE_BYTES = 1_048_576
MESSAGE_BOUNDS = JsonBounds(values=1024, depth=64, string_bytes=MAX_MESSAGE_BYTES, outside_bytes=262_144)
"""A message holds the arguments of one call: with these bounds the library reads it in a few milliseconds."""

JSON, EVENT_STREAM = "application/json", "text/event-stream"
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
_OBJECT = {"schema": {"type": "object"}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer to a request", "content": {JSON: _OBJECT, EVENT_STREAM: {}}},
    202: {"description": "A notification was taken"},
    "4XX": {
        "description": "An error of this API, or one of JSON-RPC with `code` and `message` in `error`",
        "content": {JSON: _OBJECT},
    },
}

router = new_router("Model Context Protocol")


async def _check_origin(request: Request, options: OptionsDep) -> None:
    """Refuse pages of other origins, as the protocol demands against DNS rebinding; programs send no `Origin`."""
    origin = request.headers.get("origin")
    if origin is not None and not options.allows(origin):
        raise PermissionDenied("This Origin may not call /mcp; the operator lists those that may.", param="Origin")


LookupsDep = Annotated[Lookups, Depends(service_of(Lookups))]
LibraryDep = Annotated[McpLibrary, Depends(service_of(McpLibrary))]


@router.post(
    "/mcp",
    summary="MessageAnswer a message of the Model Context Protocol",
    response_class=Response,
    dependencies=[Depends(_check_origin)],
    responses=_ANSWERS,
    openapi_extra={"requestBody": {"required": True, "content": {JSON: _OBJECT}}},
)
async def exchange_message(request: Request, caller: CallerDep, lookups: LookupsDep, library: LibraryDep) -> Response:
    """Answer one JSON-RPC message: tools and resources over the knowledge bases that the caller may use."""
    check_media_type(request)
    accepted = _choose_form(request)
    text = await read_json(request, MESSAGE_BOUNDS)
    if len(text.raw) > MAX_MESSAGE_BYTES:
        raise PayloadTooLarge(f"A message is larger than {MAX_MESSAGE_BYTES} bytes.")
    refusal = await _refusal_of(text)
    if refusal is not None:
        return refusal
    answer = await library.answer_of(lookups, caller, request.scope["state"]["request_id"])
    return _McpAnswer(answer, bytes(text.raw), as_events=accepted == EVENT_STREAM)


def _choose_form(request: Request) -> str:
    """Return the form of the answer: JSON, or an event stream for a client that accepts nothing else."""
    given = request.headers.get("accept") or "*/*"
    kinds = {part.partition(";")[0].strip().lower() for part in given.split(",")}
    if kinds & {"*/*", "application/*", JSON}:
        return JSON
    if kinds & {"text/*", EVENT_STREAM}:
        return EVENT_STREAM
    raise HTTPException(406, f"Accept: must name {JSON} or {EVENT_STREAM}.")


async def _refusal_of(text: JsonText) -> Response | None:
    """Return the error of JSON-RPC for what is no message, or holds text that no other part of this API takes."""
    try:
        body = await run_cooperatively(decode_cooperatively(text))
    except InvalidRequest as error:
        return _error(_PARSE_ERROR, error.message)
    complaint = _complaint_about(body)
    return _error(_INVALID_REQUEST, complaint) if complaint is not None else None


def _complaint_about(body: JsonObject) -> str | None:
    """Say what keeps an object from being a message of JSON-RPC 2.0, sections 4 and 5, or None."""
    is_answer = "result" in body or "error" in body
    number = body.get("id", "")
    if body.get("jsonrpc") != "2.0":
        return 'jsonrpc: must be "2.0"'
    if not isinstance(body.get("method"), str) and not is_answer:
        return "method: must be a string"
    if not isinstance(number, str | int) or isinstance(number, bool):
        return "id: must be a string or a whole number"
    return None if isinstance(body.get("params", {}), dict) else "params: must be an object"


def _error(code: int, message: str) -> Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return Response(orjson.dumps(body), 400, media_type=JSON)


class _McpAnswer(Response):
    """Lets the library answer a message that has been read already."""

    def __init__(self, answer: MessageAnswer, message: bytes, *, as_events: bool) -> None:
        self.status_code = 200
        self.background = None
        self._answer = answer
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
        await self._answer({**scope, "headers": headers}, receive_message, send_answer)


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
