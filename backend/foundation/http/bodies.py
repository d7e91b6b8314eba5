"""The bytes of request bodies: how long one may be, and how many may be held at a time, by whom."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.foundation.domain.host_secrets import bind_to_host
from backend.foundation.http.errors import error_response, log_server_error
from backend.foundation.http.middleware import KEY_ID
from shared.errors import BallastError, InvalidRequest, PayloadTooLarge, TooManyRequests, Unavailable
from shared.shares import QUARTER, RETRY_AFTER_SECONDS, Holder, Lease, SharedBudget

SMALL_BODY_BYTES = 65_536
"""A longer body is read only for a caller who is known, whose part of all bytes it counts against."""

UNPACKED_PART = 8
"""What a body becomes on its way into the database takes some eight times its length.

So bodies over `SMALL_BODY_BYTES` are decoded and stored as many at a time as make up an eighth of all bytes, and the
others wait.
"""

WAIT_SECONDS = 60.0
"""How long a body that has arrived waits until others are stored."""

NOBODY = Holder("nobody", QUARTER, is_sure_of_least=False)
"""Holds the small bodies of callers who are not known yet."""

CODING_HEADER = "Content-Encoding"
PLAIN_CODINGS = ("", "identity")
LEASE = "body_lease"
NO_ROOM_FOR_WORK = "The server has no room for another long body now: it decodes an eighth of BACKEND_MAX_BODIES_BYTES."

HolderOf = Callable[[str | None], Awaitable[str]]
"""Returns the name of the caller who presents a bearer key or token, or raises `Unauthenticated`."""


class DecodingRoom(NamedTuple):
    """The bytes of long bodies that may be at work at a time, and how long others wait for them."""

    budget: SharedBudget
    wait_seconds: float = WAIT_SECONDS


class BodyLimit:
    """Answers 413 to a body over the limit, and 503 or 429 to one for which there is no room now.

    Bytes count until the answer begins; where a turn keeps what it was given (`find_held_body`), until it ends. Those
    of a long body count from when they are announced. Those of a small one count as they arrive, because an
    announcement costs its sender nothing. The rest of a refused body is not read; the server discards it as it comes.
    `decoding` bounds the bodies at work, which take more than their bytes. Nobody unpacks a body here, so one that says
    that it is packed is refused: read as it is it would mean nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        budget: SharedBudget,
        decoding: DecodingRoom,
        holder_of: HolderOf,
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._budget = budget
        self._decoding = decoding
        self._holder_of = holder_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        announced = _read_length(headers, self._max_body_bytes)
        too_large = PayloadTooLarge(f"The body is larger than {self._max_body_bytes} bytes.")
        if announced > self._max_body_bytes:
            await error_response(too_large)(scope, receive, send)
            return
        if (coding := headers.get("content-encoding", "").strip().lower()) not in PLAIN_CODINGS:
            packed = InvalidRequest(f"Bodies are taken as they are; send it without {coding!r}.", param=CODING_HEADER)
            await error_response(packed)(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        owner = partial(_owner, state, headers, self._holder_of)
        state[LEASE] = body = _HeldBody(self._budget, self._decoding, owner, announced)
        exchange = _LimitedExchange(body, too_large, self._max_body_bytes, receive, send)
        try:
            await exchange.run(self._app, scope)
        finally:
            del state[LEASE]  # which holds the state
            body.release()


def find_held_body(request: Request) -> "_HeldBody":
    """Return the bytes that the body of a request takes, so that its key can own them, and a turn hold them."""
    held: _HeldBody = request.scope["state"][LEASE]
    return held


class _HeldBody:
    """The bytes of one body, taken from the budget as they are announced or arrive.

    They are nobody's until the key is known: when the request has been authenticated, or as soon as they are many, or
    nobody has room left.
    """

    def __init__(
        self, budget: SharedBudget, decoding: DecodingRoom, owner: Callable[[], Awaitable[str]], announced: int
    ) -> None:
        self._decoding = decoding
        self._at_work: Lease | None = None
        self._owner = owner
        self._announced = announced if announced > SMALL_BODY_BYTES else 0
        self._lease = budget.lease(NOBODY)
        self._is_owned = False
        self._taken = 0
        self._is_kept = False

    async def grow_to(self, length: int) -> None:
        """Take the bytes up to this length, at least those that a long body has announced.

        Raises:
            Unauthenticated: the body is not small, or nobody has room left, and its sender is not known.
            TooManyRequests: the caller has their part of all bytes.
            Unavailable: there is no room for more bytes.
        """
        wanted = max(length, self._announced)
        if wanted > SMALL_BODY_BYTES:
            await self._find_owner()
        try:
            self._lease.grow(wanted - self._taken)
        except TooManyRequests:
            if self._is_owned:
                raise
            await self._find_owner()
            self._lease.grow(wanted - self._taken)
        self._taken = wanted

    async def wait_for_work(self) -> None:
        """Wait until what this body becomes has room beside that of others; a small one does not wait.

        Raises:
            Unavailable: others have taken too long.
        """
        if self._taken <= SMALL_BODY_BYTES or self._at_work is not None:
            return
        try:
            async with asyncio.timeout(self._decoding.wait_seconds):
                self._at_work = await self._decoding.budget.wait_for(self._taken)
        except TimeoutError:
            raise Unavailable(NO_ROOM_FOR_WORK, retry_after_seconds=RETRY_AFTER_SECONDS) from None

    def end_work(self) -> None:
        """Let the next body be decoded and stored."""
        if self._at_work is not None:
            self._at_work.release()

    def own(self, name: str) -> None:
        """Count the bytes, and those that come, against the part of a key.

        Raises:
            TooManyRequests: the key has its part of all bytes.
        """
        if not self._is_owned:
            self._lease.hand_to(Holder(name))
            self._is_owned = True

    def keep(self) -> Callable[[], None]:
        """Hold the bytes until the returned function is called."""
        self._is_kept = True
        return self._lease.release

    def release(self) -> None:
        """Give the bytes back, unless they are kept."""
        self.end_work()
        if not self._is_kept:
            self._lease.release()

    async def _find_owner(self) -> None:
        if not self._is_owned:
            self.own(await self._owner())


class _LimitedExchange:
    """One request with a limited body: beyond a limit, a refusal replaces the answer of the application."""

    def __init__(
        self, body: _HeldBody, too_large: PayloadTooLarge, max_body_bytes: int, receive: Receive, send: Send
    ) -> None:
        self._body = body
        self._too_large = too_large
        self._max_body_bytes = max_body_bytes
        self._received_bytes = 0
        self._refusal: BallastError | None = None
        self._receive = receive
        self._send = send
        self._started = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive_counting, self._send_checking)
        except BallastError as error:
            if error is not self._refusal:
                raise
        if self._refusal is not None and not self._started:
            log_server_error(self._refusal, scope)
            await error_response(self._refusal)(scope, self._receive, self._send)

    async def _receive_counting(self) -> Message:
        if not self._started:
            await self._hold(self._received_bytes)
        message = await self._receive()
        arrived = len(message.get("body", b""))
        self._received_bytes += arrived
        if self._received_bytes > self._max_body_bytes:
            self._refusal = self._too_large
            raise self._refusal
        if arrived and not self._started:
            await self._hold(self._received_bytes)
        return message

    async def _hold(self, length: int) -> None:
        try:
            await self._body.grow_to(length)
        except BallastError as refusal:
            self._refusal = refusal
            raise

    async def _send_checking(self, message: Message) -> None:
        if self._refusal is not None and not self._started:
            return
        if not self._started:
            self._started = True
            self._body.release()
        await self._send(message)


def _read_length(headers: Headers, limit_bytes: int) -> int:
    """Return the announced length, or just more than the limit where it is a number beyond it; 0 without one.

    Compared by length first, because Python refuses to convert numbers of thousands of digits.
    """
    announced = headers.get("content-length", "")
    if not announced.isdecimal():
        return 0
    digits = announced.lstrip("0")
    return limit_bytes + 1 if len(digits) > len(str(limit_bytes)) else int(digits or "0")


async def _owner(state: Mapping[str, str], headers: Headers, holder_of: HolderOf) -> str:
    """Return the sender of a request: the name is known where the request has been authenticated already."""
    return state.get(KEY_ID) or await holder_of(read_key(headers))


PAGE_HEADER = "x-ballast-page"
"""Sent by the page alone: no form, link or script of another origin can make a browser send it with our cookie."""

SESSION_COOKIES = ("__Host-ballast", "ballast")
"""What keeps a session in a browser: the first one over https, the other one over plain http on one machine."""


def read_key(headers: Headers) -> str | None:
    """Return the bearer key or token, however the scheme before it is written, or the key of the page's session."""
    given = headers.get("authorization")
    if given is None:
        return read_session(headers) if PAGE_HEADER in headers else None
    scheme, _, key = given.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def read_session(headers: Headers) -> str | None:
    """Return the key of a session; the host is a part of it, so that the cookie opens nothing at any other host."""
    cookies = cookie_parser(headers.get("cookie", ""))
    secret = next((cookies[name] for name in SESSION_COOKIES if name in cookies), None)
    return bind_to_host(secret, headers.get("host", "")) if secret else None
