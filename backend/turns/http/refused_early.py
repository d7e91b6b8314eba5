"""Refusing callers at a limit before anything of their request is read."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.bodies import read_key
from backend.foundation.http.errors import error_response, log_server_error
from backend.foundation.http.middleware import KEY_ID
from backend.foundation.http.refusal_throttle import RAN_OUT
from backend.foundation.http.services import service_in
from backend.foundation.services.idempotency import KEY_HEADER, OncePerKey
from backend.identity.domain import Caller, KeyRole
from backend.identity.http.caller import identify_caller
from backend.identity.services import ACT_FOR_HEADER
from backend.turns.services.use_cases import TurnServices
from shared.errors import BallastError, TooManyRequests, Unavailable
from shared.shares import Holder, Lease, SharedBudget

RESPONSES_PATH = "/v1/responses"
CHAT_PATH = "/v1/chat/completions"
TURN_PATHS = frozenset({RESPONSES_PATH, CHAT_PATH})
MOST_REPEATED = 16
"""So many requests of refused callers are read at a time, because they may have been answered before."""


class _Route(NamedTuple):
    """Stands in for the route of a request that none sees, so that the access log can name it."""

    path: str


class RefusedEarly:
    """Answers a request for a turn that its key, or the limits of its key and tenant, refuse anyway.

    A request with an Idempotency-Key that was answered before is read and answered again: one at a time of a key, so
    that who is refused has no more than one body here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._repeated = SharedBudget("places for repeated requests", MOST_REPEATED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in TURN_PATHS:
            await self._app(scope, receive, send)
            return
        with self._repeated.lease() as place, _set_at_end() as is_read:
            refused = await self._refuse(Request(scope), place, is_read)
            if refused is None:
                await self._app(scope, receive, _release_on_answer(place, send) if place.amount else send)
            else:
                scope["route"] = _Route(scope["path"])
                await refused(scope, receive, send)

    async def _refuse(self, request: Request, place: Lease, is_read: asyncio.Event) -> Response | None:
        """Return the answer to a request that is not to be read, else None."""
        rates = service_in(request, TurnServices).rates
        digest = sha256((read_key(request.headers) or "").encode("latin-1")).digest()
        try:
            seen = rates.refused_callers.find(digest)
            caller = seen or await identify_caller(request)
            refusal = await rates.refusal(caller, is_read)
            if refusal is None:
                return None
            if seen is None:
                rates.refused_callers.note(digest, caller)
            if await self._is_answered_again(request, caller, place):
                return None
        except BallastError as error:
            log_server_error(error, request.scope)
            return error_response(error)
        rates.note_repeated()
        request.scope["state"].update({KEY_ID: caller.key_id, RAN_OUT: refusal.ran_out})
        response = error_response(refusal.error)
        response.headers.update(refusal.headers)
        return response

    async def _is_answered_again(self, request: Request, caller: Caller, place: Lease) -> bool:
        """Whether a request was answered before under its key, and has a place now in which it may be read."""
        keys = request.headers.getlist(KEY_HEADER)
        if len(keys) != 1:
            return False
        user_id = request.headers.get(ACT_FOR_HEADER, "") if caller.role is KeyRole.SERVICE else caller.user_id
        try:
            place.hand_to(Holder(caller.key_id, 1 / MOST_REPEATED))
            place.grow(1)
        except (TooManyRequests, Unavailable):
            return False
        return await service_in(request, OncePerKey).has_answer((caller.tenant, user_id), keys[0])


@contextmanager
def _set_at_end() -> Generator[asyncio.Event]:
    event = asyncio.Event()
    try:
        yield event
    finally:
        event.set()


def _release_on_answer(place: Lease, send: Send) -> Send:
    """Give the place back when the answer begins: the request has been read by then."""

    async def send_on(message: Message) -> None:
        place.release()
        await send(message)

    return send_on
