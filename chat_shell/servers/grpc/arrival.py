"""Checks of a gRPC call before its message is read: gRPC reads a message whole before any handler sees it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from hmac import compare_digest
from typing import TypeAlias

import structlog
from grpc import HandlerCallDetails, RpcMethodHandler, stream_stream_rpc_method_handler
from grpc.aio import ServerInterceptor, ServicerContext

from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.statuses import grpc_status, trailers_of
from shared.errors import BallastError, InvalidRequest, Unauthenticated, Unavailable
from shared.message_size import MESSAGE_BYTES_KEY, SHORT_MESSAGE_BYTES
from shared.shares import RETRY_AFTER_SECONDS, Lease
from shared.telemetry import LogEvent

log = structlog.get_logger("chat_shell.grpc")

Handler: TypeAlias = "RpcMethodHandler[object, object] | None"  # the class has its parameters in its stubs only
Continuation: TypeAlias = "Callable[[HandlerCallDetails], Awaitable[Handler]]"

_PLACE: ContextVar[Lease] = ContextVar("place_to_arrive")
_IS_SHORT: ContextVar[bool] = ContextVar("is_announced_as_short")


def check_announced(count: int) -> None:
    """Check that a message which was announced as short is short.

    Raises:
        InvalidRequest: it has more bytes.
    """
    if _IS_SHORT.get() and count > SHORT_MESSAGE_BYTES:
        raise InvalidRequest(f"The message is longer than '{MESSAGE_BYTES_KEY}' says.")


def release_place() -> None:
    """Give back the place of the current call's message; handlers call it once they have decoded the message."""
    _PLACE.get().release()


class Arrivals(ServerInterceptor):
    """Lets the messages of one service arrive, only with the service token, and only so many at a time.

    Until a call has its place, the bytes of its message stay with the caller, but for gRPC's windows. A place is held
    for the bounds' `reading_seconds`, that of a short message for `short_reading_seconds`: after that the call is
    given up.
    """

    def __init__(self, service: str, service_token: str, bounds: MessageBounds) -> None:
        self._prefix = f"/{service}/"
        self._authorization = f"Bearer {service_token}".encode()
        self._bounds = bounds

    async def intercept_service(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, continuation: Continuation, handler_call_details: HandlerCallDetails
    ) -> Handler:
        """Return the handler of a call once its message may arrive, or one that refuses the call unread."""
        handler = await continuation(handler_call_details)
        if handler is None or not str(handler_call_details.method).startswith(self._prefix):
            return handler
        try:
            self._authenticate(handler_call_details)
            is_short = _is_announced_as_short(handler_call_details)
            place = await self._place(is_short=is_short)
        except BallastError as refusal:
            log.warning(LogEvent.CALL_REFUSED, method=handler_call_details.method, error=type(refusal).__name__)
            return _refuse_with(refusal)
        _PLACE.set(place)
        _IS_SHORT.set(is_short)
        self._bound_arrival(place, self._bounds.short_reading_seconds if is_short else self._bounds.reading_seconds)
        return handler

    def _authenticate(self, call: HandlerCallDetails) -> None:
        if not compare_digest(_metadata_of(call, "authorization"), self._authorization):
            raise Unauthenticated("The service token is missing or wrong.")

    async def _place(self, *, is_short: bool) -> Lease:
        try:
            async with asyncio.timeout(self._bounds.reading_seconds):
                return await self._bounds.place_to_arrive(is_short=is_short)
        except TimeoutError:
            message = "The model runner is reading too many requests."
            raise Unavailable(message, retry_after_seconds=RETRY_AFTER_SECONDS) from None

    def _bound_arrival(self, place: Lease, seconds: float) -> None:
        """End the call where its message does not arrive in time; the end of the call frees its place at any rate."""
        call = asyncio.current_task()
        if call is None:
            raise RuntimeError("gRPC handles each call in a task of its own")

        def give_up() -> None:
            if place.amount:
                call.cancel()

        timer = asyncio.get_running_loop().call_later(seconds, give_up)
        call.add_done_callback(lambda _: (timer.cancel(), place.release()))


def _metadata_of(call: HandlerCallDetails, key: str) -> bytes:
    given = dict(call.invocation_metadata or ()).get(key, "")
    return given if isinstance(given, bytes) else given.encode()


def _is_announced_as_short(call: HandlerCallDetails) -> bool:
    given = _metadata_of(call, MESSAGE_BYTES_KEY)
    return given.isdigit() and len(given) < 20 and int(given) <= SHORT_MESSAGE_BYTES


def _refuse_with(refusal: BallastError) -> Handler:
    """Return a handler that reads nothing; only those of streams do not wait for a message before they are called."""

    async def refuse(_unread: AsyncIterator[bytes], context: ServicerContext[bytes, bytes]) -> None:
        await context.abort(grpc_status(refusal), refusal.message, trailers_of(refusal))

    return stream_stream_rpc_method_handler(refuse)
