"""Admitting readers of running turns a few at a time, however many of one key come at once."""

from asyncio import Semaphore
from hashlib import sha256
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.http.bodies import read_key
from backend.turns.http.refused_early import RESPONSES_PATH

OPENED_AT_ONCE = 4
"""So many readers of a key are looked up at a time; one takes some 3 ms, in which nobody else has the event loop."""


_SLASHES = f"{RESPONSES_PATH}/".count("/")


class PacedFollowing:
    """Lets the requests of a key for responses, or for their events, in a few at a time, until their answers begin.

    All of them would otherwise take their steps in one round of the event loop, and turns would wait for whole rounds.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._places: WeakValueDictionary[bytes, Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or not _is_following(scope):
            await self._app(scope, receive, send)
            return
        key = sha256((read_key(Request(scope).headers) or "").encode("latin-1")).digest()
        place = _Place(self._places.setdefault(key, Semaphore(OPENED_AT_ONCE)), send)
        await place.take()
        try:
            await self._app(scope, receive, place.send)
        finally:
            place.give_back()


class _Place:
    """A place of a reader until its answer begins."""

    def __init__(self, places: Semaphore, send: Send) -> None:
        self._places: Semaphore | None = places
        self._send = send

    async def take(self) -> None:
        if self._places is not None:
            await self._places.acquire()

    async def send(self, message: Message) -> None:
        self.give_back()
        await self._send(message)

    def give_back(self) -> None:
        if self._places is not None:
            self._places.release()
            self._places = None


def _is_following(scope: Scope) -> bool:
    """Whether a response is asked for: a query may say in many ways that its events are wanted."""
    path: str = scope["path"]
    return scope["method"] == "GET" and path.startswith(f"{RESPONSES_PATH}/") and path.count("/") == _SLASHES
