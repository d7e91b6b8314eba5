"""Holding refusals back: the one place through which each 401 and 429 leaves."""

import asyncio
from http import HTTPStatus

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.json_body import JSON_TEXT
from backend.foundation.http.middleware import KEY_ID
from backend.foundation.http.services import HttpOptions, service_in
from backend.foundation.services.supervision import is_set_within
from shared.http_server.connection import CLIENT_LEFT

RAN_OUT = "ran_out"
"""Where the state of a request names what has run out for it: the limits of a key, or of a tenant."""

STRANGERS = "strangers"
"""All whose key is not known; a name of their own would cost them nothing."""


class RefusalThrottle:
    """Holds each refusal back as long as the pace of its reason asks for.

    It leaves after the application is done and has let go of the request, and nothing more of the body is read
    meanwhile. For a client that leaves nothing is held.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send)
        await self._app(scope, receive, answer.send)
        if answer.held:
            await answer.leave()


class _Answer:
    """What the application answers, of which a refusal waits."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.held: list[Message] = []
        self._scope = scope
        self._send = send

    async def send(self, message: Message) -> None:
        if self.held or (message["type"] == "http.response.start" and _reason(self._scope, message["status"])):
            self.held.append(message)
        else:
            await self._send(message)

    async def leave(self) -> None:
        state = self._scope["state"]
        state.pop(JSON_TEXT, None)
        pace = service_in(Request(self._scope), HttpOptions).refusals
        seconds = pace.delay_seconds(_reason(self._scope, self.held[0]["status"]))
        if seconds and await is_set_within(state.get(CLIENT_LEFT, asyncio.Event()), seconds):
            return
        for message in self.held:
            await self._send(message)


def _reason(scope: Scope, status: int) -> str:
    """Return why a request is refused; empty where it is not refused for asking too often.

    The provider of a model may refuse a turn that has begun, which is not of the caller's making.
    """
    state = scope["state"]
    if status == HTTPStatus.UNAUTHORIZED:
        return STRANGERS
    if status == HTTPStatus.TOO_MANY_REQUESTS and not state.get("turn_begun"):
        return str(state.get(RAN_OUT) or state.get(KEY_ID, ""))
    return ""
