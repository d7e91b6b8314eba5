"""Refusing a key at its limit before anything of its request is read, and never faster than a process can bear."""

import asyncio
from hashlib import sha256
from http import HTTPStatus
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.bodies import presented_key
from backend.foundation.http.errors import error_response
from backend.foundation.http.json_body import JSON_TEXT
from backend.foundation.http.middleware import KEY_ID
from backend.foundation.http.services import service_in
from backend.foundation.services.idempotency import KEY_HEADER
from backend.turns.services.turn_rates import TurnRates
from backend.turns.services.use_cases import TurnServices

RESPONSES_PATH = "/v1/responses"
CHAT_PATH = "/v1/chat/completions"
TURN_PATHS = frozenset({RESPONSES_PATH, CHAT_PATH})
CALLER = "turn_caller"
"""Where the state of a request for a turn holds its caller, once he is known."""


class _Route(NamedTuple):
    """Stands in for the route of a request that none sees, so that the access log can name it."""

    path: str


class RefusedEarly:
    """Answers 429 to a request for a turn whose key is certainly at a limit, and holds back too many of such answers.

    The key or token was valid when it was refused before; one request a second goes the whole way, so that a key that
    is revoked meanwhile is told so. A request with an Idempotency-Key does as well: its turn may have begun, and be
    answered again. Nothing of a body is kept meanwhile, and nothing at all of a client that leaves.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in TURN_PATHS:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        rates = service_in(request, TurnServices).rates
        presented = _presented(request.headers)
        caller = rates.refused_callers.find(presented) if presented is not None else None
        repeated = rates.repeated_refusal(caller) if caller is not None and KEY_HEADER not in request.headers else None
        if caller is None or repeated is None:
            answer = _Answer(scope, send, rates, presented)
            await self._app(scope, receive, answer.send)
            await answer.end(receive)
            return
        rates.note_repeated()
        scope["route"] = _Route(scope["path"])
        scope["state"][KEY_ID] = caller.key_id
        response = error_response(repeated.error)
        response.headers.update(repeated.headers)
        if await _is_there_after(rates.refused_callers.delay_seconds(caller.key_id), receive):
            await response(scope, receive, send)


class _Answer:
    """What the application answers: where it refuses a turn, the caller is noted, and the answer held back.

    It leaves after the application is done and has let go of the request, whose bytes no longer count by then.
    """

    def __init__(self, scope: Scope, send: Send, rates: TurnRates, presented: bytes | None) -> None:
        self._state = scope["state"]
        self._send = send
        self._rates = rates
        self._presented = presented
        self._held: list[Message] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._presented is not None:
            if message["status"] == HTTPStatus.UNAUTHORIZED:
                self._rates.refused_callers.forget(self._presented)
            elif message["status"] == HTTPStatus.TOO_MANY_REQUESTS and self._is_refused():
                self._rates.refused_callers.note(self._presented, self._state[CALLER])
                self._held.append(message)
                return
        if self._held:
            self._held.append(message)
        else:
            await self._send(message)

    def _is_refused(self) -> bool:
        """Whether the limits refuse the caller; a model's provider may do that to a turn that has begun."""
        return CALLER in self._state and not self._state.get("turn_begun")

    async def end(self, receive: Receive) -> None:
        if not self._held:
            return
        self._state.pop(JSON_TEXT, None)
        delay_seconds = self._rates.refused_callers.delay_seconds(self._state[CALLER].key_id)
        if await _is_there_after(delay_seconds, receive):
            for message in self._held:
                await self._send(message)


async def _is_there_after(seconds: float, receive: Receive) -> bool:
    """Wait; return whether the client is still there, for one that leaves is to take no room here.

    What arrives of a body meanwhile is discarded, as the server discards it behind the answer.
    """
    if not seconds:
        return True
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return True
    return False


def _presented(headers: Headers) -> bytes | None:
    """Return a digest of the key or token, whose text is not to be kept; None where there is not just one."""
    key = presented_key(headers) if len(headers.getlist("authorization")) == 1 else None
    return sha256(key.encode("latin-1")).digest() if key is not None else None
