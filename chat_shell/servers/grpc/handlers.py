"""The methods of `execution.v1.ChatShell`, which take and return encoded messages.

Requests are decoded here and not by gRPC, so that bytes which are no message are reported as the caller's error.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog
from grpc import (
    GenericRpcHandler,
    StatusCode,
    method_handlers_generic_handler,
    stream_stream_rpc_method_handler,
    unary_stream_rpc_method_handler,
    unary_unary_rpc_method_handler,
)
from grpc.aio import ServicerContext

from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.arrival import check_announced, release_place
from chat_shell.servers.grpc.caller_link import CallerLink
from chat_shell.servers.grpc.messages import decode_message, encode_event
from chat_shell.servers.grpc.statuses import grpc_status, trailers_of
from chat_shell.turns.services.event_buffer import HEARTBEAT_SECONDS, EventBuffer
from chat_shell.turns.services.turn_service import TurnService
from protos.execution.v1 import chat_shell_pb2, request_pb2
from shared.errors import BallastError, InternalError
from shared.message_size import HEARTBEAT_KEY
from shared.models.events import NEWER_EVENTS_HEADER, ExecutionEvent, FunctionCallDelta
from shared.tracing import TRACEPARENT, SpanKind, is_tracing, span_of
from shared.wire import (
    card_to_proto,
    offered_to_proto,
    request_from_proto,
    tool_call_from_proto,
    tool_result_to_proto,
)

log = structlog.get_logger("chat_shell.grpc")

Asked = TypeVar("Asked")
T = TypeVar("T")
Context = ServicerContext[bytes, bytes]
Answer = Callable[[Asked, Context], Awaitable[T]]

SERVICE_NAME = chat_shell_pb2.DESCRIPTOR.services_by_name["ChatShell"].full_name


class ChatShellHandlers:
    """Handles the calls of `execution.v1.ChatShell`."""

    def __init__(self, turns: TurnService, bounds: MessageBounds) -> None:
        self._turns = turns
        self._bounds = bounds
        self._replica = secrets.token_hex(16)
        self._links: set[CallerLink] = set()

    def generic_handler(self) -> GenericRpcHandler:
        """Return the handler to register with a gRPC server."""
        return method_handlers_generic_handler(
            SERVICE_NAME,
            {
                "Execute": unary_stream_rpc_method_handler(with_error_status(trace_calls("Execute", self.execute))),
                "Connect": stream_stream_rpc_method_handler(with_error_status(self.connect)),
                "ListModels": unary_unary_rpc_method_handler(with_error_status(self.list_models)),
                "ListTools": unary_unary_rpc_method_handler(with_error_status(self.list_tools)),
                "RunTool": unary_unary_rpc_method_handler(with_error_status(trace_calls("RunTool", self.run_tool))),
            },
        )

    async def execute(self, body: bytes, context: Context) -> None:
        """Run a turn; cancelling the call cancels the turn."""
        check_announced(len(body))
        with self._bounds.hold() as held:
            held.grow(len(body))
            decoded = await decode_message(request_pb2.ExecutionRequest, request_from_proto, body)
            release_place()
            request = self._turns.bring_forward(decoded, context.time_remaining())
            knows_newer = _metadata_of(context, NEWER_EVENTS_HEADER) is not None
            async with self._turns.open(request) as events:
                take = await _begin_beating(context, events)
                while ready := await take():
                    for event in ready:
                        if knows_newer or not isinstance(event, FunctionCallDelta):
                            await context.write(encode_event(event))

    async def connect(self, _unread: object, context: Context) -> None:
        """Run all turns of a caller; the end of the call cancels them."""
        release_place()
        with self._bounds.hold_stream():
            await self._serve_link(context)

    async def _serve_link(self, context: Context) -> None:
        knows_newer = _metadata_of(context, NEWER_EVENTS_HEADER) is not None
        link = CallerLink(self._turns, self._bounds, f"{SERVICE_NAME}/Execute", knows_newer=knows_newer)
        self._links.add(link)
        if not self._turns.accepting:
            link.send_away()
        try:
            await link.serve(context, self._replica)
        finally:
            self._links.discard(link)

    @property
    def streams(self) -> int:
        """How many streams of `Connect` are open."""
        return len(self._links)

    def send_callers_away(self) -> None:
        """Tell those who are connected that this process takes no new turns."""
        for link in self._links:
            link.send_away()

    async def list_models(self, body: bytes, _context: Context) -> bytes:
        """List the models that are offered."""
        check_announced(len(body))
        release_place()
        cards = [card_to_proto(card) for card in self._turns.models()]
        return chat_shell_pb2.ListModelsResponse(models=cards).SerializeToString()

    async def list_tools(self, body: bytes, _context: Context) -> bytes:
        """List the tools of tool servers, and the skills."""
        check_announced(len(body))
        release_place()
        return offered_to_proto(await self._turns.list_offered_tools()).SerializeToString()

    async def run_tool(self, body: bytes, context: Context) -> bytes:
        """Run one tool; cancelling the call cancels the tool."""
        check_announced(len(body))
        with self._bounds.hold() as held:
            held.grow(len(body))
            call = await decode_message(chat_shell_pb2.RunToolRequest, tool_call_from_proto, body)
            release_place()
            turn = self._turns.bring_forward(call.turn, context.time_remaining())
            result = await self._turns.run_tool(call.model_copy(update={"turn": turn}))
        return tool_result_to_proto(result).SerializeToString()


def with_error_status(answer: Answer[Asked, T]) -> Answer[Asked, T]:
    """Answer an exception with a gRPC status; the traceback of an unexpected one goes to the log only."""

    async def call(body: Asked, context: Context) -> T:
        try:
            return await answer(body, context)
        except BallastError as error:
            refusal = _refusal_of(error)  # not the error: its frames hold the request, and this one would hold it
        except Exception as error:
            if context.cancelled():
                raise  # the caller cancelled during a write: there is nobody to answer, and no defect
            log.exception("Call broke")
            refusal = _refusal_of(InternalError(f"An internal error ended the call ({type(error).__name__})."))
        del body  # gRPC keeps the error of an abort, and with it this frame, until Python looks for cycles
        return await context.abort(*refusal)

    return call


def trace_calls(method: str, answer: Answer[bytes, T]) -> Answer[bytes, T]:
    """Trace the calls of a method, each under the span of its caller."""

    async def call(body: bytes, context: Context) -> T:
        parent = _metadata_of(context, TRACEPARENT) if is_tracing() else None
        name = f"{SERVICE_NAME}/{method}"
        with span_of(name, {"rpc.system": "grpc", "rpc.method": name}, SpanKind.SERVER, parent):
            return await answer(body, context)

    return call


def _metadata_of(context: Context, key: str) -> str | None:
    given = dict(context.invocation_metadata() or ()).get(key)
    return given if isinstance(given, str) else None


async def _begin_beating(context: Context, events: EventBuffer) -> Callable[[], Awaitable[Sequence[ExecutionEvent]]]:
    """Return what takes events, and fills silence with empty messages where the caller has asked for that."""
    if _metadata_of(context, HEARTBEAT_KEY) is None:
        return events.take
    await context.send_initial_metadata(((HEARTBEAT_KEY, str(int(1000 * HEARTBEAT_SECONDS))),))
    return partial(events.take_beating, partial(context.write, b""), HEARTBEAT_SECONDS)


def _refusal_of(error: BallastError) -> tuple[StatusCode, str, tuple[tuple[str, bytes], ...]]:
    return grpc_status(error), error.message, trailers_of(error)
