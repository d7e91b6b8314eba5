"""Strict reading of JSON bodies: each accepted one can be stored and sent on, and none holds the event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from time import perf_counter
from typing import ClassVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from backend.foundation.domain.json_objects import REQUEST_BOUNDS, JsonText, decode_cooperatively
from backend.foundation.http.bodies import find_held_body
from backend.foundation.services.steps import run_cooperatively
from shared.errors import InvalidRequest
from shared.models.execution import JsonObject
from shared.models.json_bounds import SLICE_BYTES, JsonBounds, JsonScanner

FORM_BOUNDS = JsonBounds(values=1024)
"""The bounds of a body that FastAPI validates, in one step and with a report on each wrong value."""

LONG_FORM_BOUNDS = JsonBounds(values=12_288)
"""The bounds of a form that stops at its first wrong value: 500 objects of 24 values take some 15 ms."""

TURN_SECONDS = 0.002
JSON_TEXT = "json_text"
"""Where the state of a request holds its body."""

Handler = Callable[[Request], Coroutine[None, None, Response]]


class JsonRequest(Request):
    """A request whose body has been read and decoded already."""

    def __init__(self, request: Request, body: bytes, decoded: JsonObject) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body
        self._decoded = decoded

    async def json(self) -> JsonObject:
        """Return the body as `decode_cooperatively` decoded it."""
        return self._decoded


class JsonRoute(APIRoute):
    """A route that decodes its JSON body, where it has one, in place of FastAPI."""

    bounds: ClassVar[JsonBounds] = FORM_BOUNDS

    def get_route_handler(self) -> Handler:
        """Wrap FastAPI's handler."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer

        async def decode_and_answer(request: Request) -> Response:
            text = await read_json(request, self.bounds)
            if not text.raw:
                return await answer(JsonRequest(request, b"", {}))
            decoded = await run_cooperatively(decode_cooperatively(text))
            find_held_body(request).end_work()
            # FastAPI asks for no more of the body than whether there is one.
            return await answer(JsonRequest(request, b"{}", decoded))

        return decode_and_answer


class LongFormRoute(JsonRoute):
    """A route for long forms, whose shape stops at the first wrong value."""

    bounds = LONG_FORM_BOUNDS


Routers = tuple[APIRouter, ...]


def new_router(tag: str, route_class: type[JsonRoute] = JsonRoute) -> APIRouter:
    """Make a router whose JSON bodies are read strictly; every router of the API is made here."""
    return APIRouter(route_class=route_class, tags=[tag])


async def read_json(request: Request, bounds: JsonBounds = REQUEST_BOUNDS) -> JsonText:
    """Read a body and scan it as it arrives; it may be empty. It stays in the request's state as `JSON_TEXT`.

    A long one then waits until it may be decoded, and keeps others waiting until its answer begins or `end_work`.

    Raises:
        InvalidRequest: a bound of JSON text is exceeded, or the Content-Type is not that of JSON.
        Unavailable: other long bodies have taken too long.
    """
    scan, raw, pace = JsonScanner(bounds), bytearray(), _Pace()
    async for piece in request.stream():
        if not raw and piece:
            check_media_type(request)
        raw += piece
        for start in range(0, len(piece), SLICE_BYTES):
            await pace.after(partial(scan.feed, piece[start : start + SLICE_BYTES]))
    scan.end()
    await find_held_body(request).wait_for_work()
    text = JsonText(raw, scan)
    request.scope["state"][JSON_TEXT] = text
    return text


class _Pace:
    """Leaves the event loop to others for three times as long as one body has used it."""

    def __init__(self) -> None:
        self._used_seconds = 0.0

    async def after(self, work: Callable[[], None]) -> None:
        began_at = perf_counter()
        work()
        self._used_seconds += perf_counter() - began_at
        if self._used_seconds > TURN_SECONDS:
            await asyncio.sleep(3 * self._used_seconds)
            self._used_seconds = 0.0


def check_media_type(request: Request) -> None:
    """Check that the Content-Type is JSON or absent.

    Raises:
        InvalidRequest: the Content-Type is another one.
    """
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InvalidRequest(f"The body must be JSON, with Content-Type application/json, not '{media_type}'.")
