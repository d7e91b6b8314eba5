"""The client of chat_shell over HTTP and server-sent events."""

import ssl
from collections.abc import AsyncGenerator
from http import HTTPStatus
from io import BytesIO
from typing import Literal
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError

from backend.chat_shell_client.failover import Batch, RetriedStream
from backend.chat_shell_client.refusals import BROKEN_OFF, TOO_LARGE, TOO_LATE, TOO_OLD, UNREACHABLE, error_of_report
from backend.chat_shell_client.silence import count_first_beat_seconds, listen
from shared.clock import Clock
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded, InvalidRequest, PayloadTooLarge
from shared.message_size import HEARTBEAT_KEY
from shared.models.events import (
    NEWER_EVENTS,
    NEWER_EVENTS_HEADER,
    REMINDERS_HEADER,
    REMINDERS_STAY,
    ErrorReport,
    ExecutionEvent,
    ModelCard,
    TurnEnd,
)
from shared.models.execution import ExecutionRequest, count_seconds_left
from shared.models.json_text import encode_json
from shared.models.openai_converter import OpenAIRequestConverter
from shared.models.served_tools import NO_TOOLS, OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult, call_to_body
from shared.models.values import JsonObject
from shared.server_sent_events import EventDecoder
from shared.tcp_keepalive import make_asking_socket
from shared.tracing import request_tracing

DEADLINE_GRACE_SECONDS = 5.0
"""chat_shell reports a passed deadline itself, as an event; this timeout is for a chat_shell that cannot."""

CONNECT_TIMEOUT_SECONDS = 5.0
HEARTBEAT_MILLISECONDS = "15000"
"""Of chat_shell of a release that does not tell it."""

LIST_TIMEOUT_SECONDS = 5.0
MAX_REFUSAL_BYTES = 65_536
DONE = b"[DONE]"
EVENTS: TypeAdapter[ExecutionEvent] = TypeAdapter(ExecutionEvent)


class HttpChatShell:
    """Implements `ChatShell`. Build it inside the event loop that will use it."""

    def __init__(
        self,
        base_url: str,
        service_token: str,
        clock: Clock,
        max_message_bytes: int,
        tls: ssl.SSLContext | Literal[True] = True,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._clock = clock
        self._max_message_bytes = max_message_bytes
        self._session = aiohttp.ClientSession(
            headers={"authorization": f"Bearer {service_token}"},
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, socket_factory=make_asking_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=request_tracing(),
        )

    def execute(self, request: ExecutionRequest) -> RetriedStream:
        """Run a turn; closing the iterator closes the connection, and with it the turn.

        Raises:
            ChatShellUnavailable: no connection, or the connection was lost. Retryable.
            DeadlineExceeded: the request's deadline passed.
            BallastError: the error with which chat_shell refused the request.
        """
        asked = request

        async def open_stream(failure: BallastError | None) -> AsyncGenerator[Batch] | None:
            nonlocal asked
            if failure is None:
                return self._execute(asked)
            is_refused = isinstance(failure, InvalidRequest) and "limits" in (failure.param or "")
            if not is_refused or asked.limits.hand_back_tokens is None:
                return None
            # A chat_shell of the release before knows no such limit: without it, the turn runs on in one piece.
            limits = asked.limits.model_copy(update={"hand_back_tokens": None})
            asked = asked.model_copy(update={"limits": limits})
            return self._execute(asked)

        return RetriedStream(open_stream)

    async def _execute(self, request: ExecutionRequest) -> AsyncGenerator[Batch]:
        left_seconds = count_seconds_left(request.deadline, self._clock.now())
        last: ExecutionEvent | None = None
        body = self._encode(OpenAIRequestConverter.from_execution_request(request))
        asking = self._session.post(
            f"{self._base_url}/v1/responses",
            data=body,
            headers={
                "content-type": "application/json",
                REMINDERS_HEADER: REMINDERS_STAY if request.keeps_reminders else "1",
                NEWER_EVENTS_HEADER: NEWER_EVENTS,
            },
            timeout=_timeout(left_seconds + DEADLINE_GRACE_SECONDS),
        )
        try:
            async with await listen(asking, count_first_beat_seconds(len(body.getbuffer()))) as response:
                await _raise_refusal(response)
                too_long = ChatShellUnavailable("The model runner sent an event without an end.")
                decoder = EventDecoder(self._max_message_bytes, too_long)
                beat_seconds = int(response.headers.get(HEARTBEAT_KEY, HEARTBEAT_MILLISECONDS)) / 1000
                while piece := await listen(response.content.readany(), beat_seconds):
                    if ready := _decode_all(decoder.feed(piece)):
                        last = ready[-1]
                        yield ready
        except (aiohttp.ClientError, TimeoutError) as error:
            if not isinstance(last, TurnEnd):
                raise _error_of(error, begun=last is not None) from error
        if not isinstance(last, TurnEnd):
            raise ChatShellUnavailable(BROKEN_OFF)

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models.

        Raises:
            ChatShellUnavailable: no connection. Retryable.
        """
        try:
            async with self._session.get(
                f"{self._base_url}/v1/models", timeout=_timeout(LIST_TIMEOUT_SECONDS)
            ) as response:
                await _raise_refusal(response)
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ChatShellUnavailable(UNREACHABLE) from error
        try:
            return tuple(model.card() for model in _OfferedModels.model_validate_json(body).data)
        except ValidationError as error:
            raise ChatShellUnavailable("The model runner sent what is no list of models.") from error

    async def tools(self) -> OfferedTools:
        """Return the tools of tool servers, and the skills; none of a chat_shell that has no such path.

        Raises:
            ChatShellUnavailable: no connection, or what came is no such list. Retryable.
        """
        try:
            async with self._session.get(
                f"{self._base_url}/v1/tools", timeout=_timeout(LIST_TIMEOUT_SECONDS)
            ) as response:
                if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                    return NO_TOOLS
                await _raise_refusal(response)
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ChatShellUnavailable(UNREACHABLE) from error
        try:
            return OfferedTools.model_validate_json(body)
        except ValidationError as error:
            raise ChatShellUnavailable("The model runner sent what is no list of tools.") from error

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Run one of chat_shell's tools.

        Raises:
            ChatShellUnavailable: no connection, or chat_shell has no such path.
            DeadlineExceeded: the turn's deadline passed.
            BallastError: the error with which chat_shell refused the call.
        """
        left_seconds = count_seconds_left(call.turn.deadline, self._clock.now()) + DEADLINE_GRACE_SECONDS
        try:
            async with self._session.post(
                f"{self._base_url}/v1/tools/{quote(call.tool, safe='')}",
                data=self._encode(call_to_body(call)),
                headers={"content-type": "application/json"},
                timeout=_timeout(left_seconds),
            ) as response:
                if response.status == HTTPStatus.NOT_FOUND:
                    raise ChatShellUnavailable(TOO_OLD)
                await _raise_refusal(response)
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _error_of(error, begun=False) from error
        try:
            return SingleToolResult.model_validate_json(body)
        except ValidationError as error:
            raise ChatShellUnavailable("The model runner sent what is no result of a tool.") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _encode(self, content: JsonObject) -> BytesIO:
        body = encode_json(content)
        if len(body) > self._max_message_bytes:
            raise PayloadTooLarge(TOO_LARGE)
        return BytesIO(body)


class _OfferedModel(BaseModel):
    """A model in chat_shell's list: OpenAI's fields and our own."""

    id: str
    context_window_tokens: int
    max_output_tokens: int
    extra_parameters: tuple[str, ...] = ()
    cache_minimum_tokens: int = 0
    cache_ttl_seconds: int = 0
    compact_from_tokens: int = 0

    def card(self) -> ModelCard:
        """Return the model as a value of the contract."""
        return ModelCard(
            name=self.id,
            context_window_tokens=self.context_window_tokens,
            max_output_tokens=self.max_output_tokens,
            extra_parameters=self.extra_parameters,
            cache_minimum_tokens=self.cache_minimum_tokens,
            cache_ttl_seconds=self.cache_ttl_seconds,
            compact_from_tokens=self.compact_from_tokens,
        )


class _OfferedModels(BaseModel):
    """chat_shell's list of models."""

    data: list[_OfferedModel]


class _ErrorDetail(BaseModel):
    """OpenAI's error object; `type` is the class in chat_shell's error tree."""

    type: str
    code: str
    message: str
    param: str | None = None


class _ErrorAnswer(BaseModel):
    """The body of an error answer."""

    error: _ErrorDetail


def _timeout(total_seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)


def _decode_all(payloads: list[bytes]) -> tuple[ExecutionEvent, ...]:
    try:
        return tuple(EVENTS.validate_json(payload, strict=True) for payload in payloads if payload != DONE)
    except ValidationError as error:
        raise ChatShellUnavailable("The model runner sent what is no event.") from error


async def _raise_refusal(response: aiohttp.ClientResponse) -> None:
    if response.status == HTTPStatus.OK:
        return
    body = await response.content.read(MAX_REFUSAL_BYTES)
    try:
        detail = _ErrorAnswer.model_validate_json(body).error
    except ValidationError as error:
        raise ChatShellUnavailable(f"The model runner answered with status {response.status}.") from error
    raise error_of_report(ErrorReport(**detail.model_dump(), retryable=False))


def _error_of(error: aiohttp.ClientError | TimeoutError, *, begun: bool) -> BallastError:
    if isinstance(error, aiohttp.ClientError):
        return ChatShellUnavailable(BROKEN_OFF if begun else UNREACHABLE)
    return DeadlineExceeded(TOO_LATE)
