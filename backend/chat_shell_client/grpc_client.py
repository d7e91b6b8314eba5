"""The client of chat_shell over gRPC."""

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial

import grpc.aio
from google.protobuf.message import DecodeError

from backend.chat_shell_client.failover import Batch, RetriedStream
from backend.chat_shell_client.grpc_channels import CurrentChannel, LentChannel
from backend.chat_shell_client.refusals import (
    BROKEN_OFF,
    NO_ANSWER,
    REFUSES_US,
    TOO_LARGE,
    TOO_LATE,
    TOO_OLD,
    UNREACHABLE,
    ReplicaDraining,
    error_of_report,
)
from backend.chat_shell_client.replica_links import ReplicaLinks
from backend.chat_shell_client.shell_link import decode_event
from backend.chat_shell_client.silence import count_first_beat_seconds, listen
from backend.foundation.services.supervision import Supervisor
from protos.execution.v1 import chat_shell_pb2, events_pb2
from shared.certificates import Certificates
from shared.clock import Clock
from shared.errors import (
    BallastError,
    ChatShellUnavailable,
    DeadlineExceeded,
    InternalError,
    InvalidRequest,
    PayloadTooLarge,
)
from shared.message_size import HEARTBEAT_KEY, MESSAGE_BYTES_KEY, SHORT_MESSAGE_BYTES
from shared.models.events import NEWER_EVENTS_HEADER, ErrorReport, ExecutionEvent, ModelCard, TurnEnd
from shared.models.execution import ExecutionRequest, count_seconds_left
from shared.models.served_tools import NO_TOOLS, OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult
from shared.tracing import trace_headers
from shared.wire import (
    card_from_proto,
    offered_from_proto,
    report_from_proto,
    request_to_proto,
    tool_call_to_proto,
    tool_result_from_proto,
)
from shared.wire.keepalive import options_of_client

DEADLINE_GRACE_SECONDS = 5.0
"""chat_shell reports a passed deadline itself, as an event; the call's deadline is for a chat_shell that cannot."""

LONGEST_TIMEOUT_SECONDS = 86_400.0
"""gRPC limits a timeout to 27,000 hours, an earlier deadline than ours; a call with a longer timeout has none."""

LIST_TIMEOUT_SECONDS = 5.0

CONNECT_MILLISECONDS = 5_000

# gRPC checks the health of each replica itself, so that a draining replica gets no new turns.
SERVICE_CONFIG = """{
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": "execution.v1.ChatShell"}
}"""

# A window of fixed size: otherwise gRPC reads ahead of a slow consumer without a bound.
WINDOW_BYTES = 65_536

CHANNEL_OPTIONS = (
    ("grpc.service_config", SERVICE_CONFIG),
    *options_of_client(),
    ("grpc.initial_reconnect_backoff_ms", 200),
    # How long an attempt to connect may take, despite its name: a handshake of TLS on a busy machine takes a second.
    ("grpc.min_reconnect_backoff_ms", CONNECT_MILLISECONDS),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.dns_min_time_between_resolutions_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),  # gRPC obeys http_proxy even for loopback
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
)

ERROR_TRAILER = "ballast-error-bin"

BY_STATUS: dict[grpc.StatusCode, BallastError] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded(TOO_LATE),
    grpc.StatusCode.RESOURCE_EXHAUSTED: PayloadTooLarge(TOO_LARGE),
    grpc.StatusCode.UNAUTHENTICATED: InternalError(REFUSES_US),
}


class GrpcChatShell:
    """Implements `ChatShell`. Build it inside the event loop that will use it."""

    def __init__(
        self,
        target: str,
        service_token: str,
        clock: Clock,
        max_message_bytes: int,
        supervisor: Supervisor,
        certificates: Certificates | None = None,
    ) -> None:
        options = (
            *CHANNEL_OPTIONS,
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", max_message_bytes),
        )
        self._channels = CurrentChannel(target, options, certificates)
        self._metadata = (("authorization", f"Bearer {service_token}"), (NEWER_EVENTS_HEADER, "1"))
        self._clock = clock
        error_of = partial(self._error_of_call, begun=False)
        announced = (*self._metadata, (MESSAGE_BYTES_KEY, "0"))
        self._links = ReplicaLinks(self._channels, announced, max_message_bytes, supervisor, error_of)

    def execute(self, request: ExecutionRequest) -> RetriedStream:
        """Run a turn; closing the iterator cancels it.

        Raises:
            ChatShellUnavailable: no connection, or the connection was lost. Retryable.
            DeadlineExceeded: the request's deadline passed.
            BallastError: the error with which chat_shell refused the request.
        """

        async def open_stream(failure: BallastError | None) -> AsyncIterator[Batch] | None:
            return await self._begin(request) if failure is None else None

        return RetriedStream(open_stream)

    async def _begin(self, request: ExecutionRequest) -> AsyncIterator[Batch]:
        body, timeout = request_to_proto(request).SerializeToString(), self._timeout_seconds(request)
        link = await self._links.choose() if len(body) <= SHORT_MESSAGE_BYTES else None
        return link.begin(body, timeout) if link is not None else self._call(body, timeout)

    async def _call(self, body: bytes, timeout: float | None) -> AsyncGenerator[Batch]:
        """Run a turn with a call of its own."""
        last: ExecutionEvent | None = None
        metadata = (*self._metadata_for(len(body)), (HEARTBEAT_KEY, ""))
        beat_seconds: float | None = count_first_beat_seconds(len(body))
        async with self._channels.lend() as connection:
            call = connection.execute(body, metadata=metadata, timeout=timeout)
            del body
            try:
                announced = dict(await listen(call.initial_metadata(), beat_seconds)).get(HEARTBEAT_KEY)
                beat_seconds = int(announced) / 1000 if announced is not None else None
                while isinstance(encoded := await listen(call.read(), beat_seconds), bytes):
                    if encoded:
                        last = decode_event(encoded)
                        yield (last,)
            except grpc.aio.AioRpcError as error:
                if not isinstance(last, TurnEnd):
                    raise self._error_of_call(error, connection, begun=last is not None) from error
            finally:
                call.cancel()  # without this an abandoned stream goes on, on both sides (grpc/grpc#43462)
        if not isinstance(last, TurnEnd):
            raise ChatShellUnavailable(BROKEN_OFF)

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models.

        Raises:
            ChatShellUnavailable: no connection. Retryable.
        """
        asked, metadata = chat_shell_pb2.ListModelsRequest(), self._metadata_for(0)
        try:
            async with self._channels.lend() as connection:
                answer = await connection.stub.ListModels(asked, metadata=metadata, timeout=LIST_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise self._error_of_list(error) from error
        return tuple(card_from_proto(card) for card in answer.models)

    async def tools(self) -> OfferedTools:
        """Return the tools of tool servers, and the skills; none of a chat_shell that does not know the method.

        Raises:
            ChatShellUnavailable: no connection, or what came is no such list. Retryable.
        """
        asked, metadata = chat_shell_pb2.ListToolsRequest(), self._metadata_for(0)
        try:
            async with self._channels.lend() as connection:
                answer = await connection.stub.ListTools(asked, metadata=metadata, timeout=LIST_TIMEOUT_SECONDS)
            return offered_from_proto(answer)
        except InvalidRequest as error:
            raise ChatShellUnavailable("The model runner sent what is no list of tools.") from error
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return NO_TOOLS
            raise self._error_of_list(error) from error

    def _error_of_list(self, error: grpc.aio.AioRpcError) -> BallastError:
        is_late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return ChatShellUnavailable(NO_ANSWER) if is_late else self._error_of_call(error, begun=False)

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Run one of chat_shell's tools; cancelling this cancels the call, and with it the tool.

        Raises:
            ChatShellUnavailable: no connection, or chat_shell does not know the method.
            DeadlineExceeded: the turn's deadline passed.
            BallastError: the error with which chat_shell refused the call.
        """
        timeout = self._timeout_seconds(call.turn)
        message = tool_call_to_proto(call)
        metadata = self._metadata_for(message.ByteSize())
        async with self._channels.lend() as connection:
            try:
                answer = await connection.stub.RunTool(message, metadata=metadata, timeout=timeout)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    raise ChatShellUnavailable(TOO_OLD) from error
                raise self._error_of_call(error, connection, begun=False) from error
        return tool_result_from_proto(answer)

    def _error_of_call(
        self, error: grpc.aio.AioRpcError, connection: LentChannel | None = None, *, begun: bool
    ) -> BallastError:
        if not begun:
            self._channels.tell_refusal(error)
        raised = error_of_call(error, begun=begun)
        if connection is not None and isinstance(raised, ReplicaDraining):
            connection.is_left = True
        return raised

    def _metadata_for(self, message_bytes: int) -> tuple[tuple[str, str], ...]:
        return (*self._metadata, (MESSAGE_BYTES_KEY, str(message_bytes)), *trace_headers().items())

    def _timeout_seconds(self, request: ExecutionRequest) -> float | None:
        left_seconds = count_seconds_left(request.deadline, self._clock.now())
        return left_seconds + DEADLINE_GRACE_SECONDS if left_seconds < LONGEST_TIMEOUT_SECONDS else None

    async def close(self) -> None:
        """End running turns and calls, and close all channels."""
        await self._links.close()
        await self._channels.close()


def error_of_call(error: grpc.aio.AioRpcError, *, begun: bool) -> BallastError:
    """Translate a failed call by the report that chat_shell sent with it, or else by its status."""
    report = _read_trailing_report(error)
    if report is not None:
        return error_of_report(report)
    known = BY_STATUS.get(error.code())
    if known is None:
        return ChatShellUnavailable(BROKEN_OFF if begun else UNREACHABLE)
    return type(known)(known.message)


def _read_trailing_report(error: grpc.aio.AioRpcError) -> ErrorReport | None:
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_TRAILER and isinstance(value, bytes):
            try:
                return report_from_proto(events_pb2.ErrorReport.FromString(value))
            except DecodeError:
                return None
    return None
