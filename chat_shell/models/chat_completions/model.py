"""The adapter for models behind an OpenAI-compatible, streamed `POST {base_url}/chat/completions`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp

from chat_shell.models.chat_completions.encoder import OPTIONAL_FIELDS, STANDARD_DIALECT, Dialect, encode_call
from chat_shell.models.chat_completions.reader import AnswerReader
from chat_shell.models.ports import ModelCall, ModelFragment
from chat_shell.models.transport.provider_errors import error_of_response, refused_field, retry_after_seconds
from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.clock import Clock
from shared.errors import ModelProtocolViolated, ModelStalled, ModelStreamCut, ModelUnavailable
from shared.models.execution import remaining_seconds

MAX_REFUSED_FIELDS = 4
"""How many of our own fields a server may refuse, one with each request, before the call fails."""
END_MARK_GRACE_SECONDS = 5.0
"""How long usage and end mark may take after the finish reason, since some servers never send them."""
CLOSE_GRACE_SECONDS = 0.05
"""How long the end of the body may take after the end mark, so that the connection can be used again."""
ERROR_BODY_BYTES = 65_536
ERROR_BODY_SECONDS = 5.0


@dataclass(frozen=True)
class Endpoint:
    """The address of a model; `model` is its name at the provider, None where that is the name in the call."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    idle_timeout_seconds: float = 60.0
    dialect: Dialect = STANDARD_DIALECT
    close_grace_seconds: float = CLOSE_GRACE_SECONDS


class ChatCompletionsModel:
    """The port `Model` over HTTP.

    `on_request` is called with each request, byte for byte as it is sent. A field that this adapter adds by itself
    and that the server refuses is left out of all later requests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        session: aiohttp.ClientSession,
        clock: Clock,
        *,
        on_request: Callable[[ModelCall, bytes], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._session = session
        self._clock = clock
        self._on_request = on_request
        self._dialect = endpoint.dialect
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._headers = _headers(endpoint.api_key)

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        timeouts = ProviderTimeouts(self._endpoint.idle_timeout_seconds, remaining_seconds(deadline, self._clock.now()))
        reader = AnswerReader()
        response = await self._open(call, timeouts)
        # Closing a response that was read to its end returns the connection to the pool; any other close cuts it.
        try:
            while not reader.done:
                timeouts.check()
                frame_count = reader.frame_count
                received = await _receive(response, reader, timeouts)
                if not received:
                    break
                for fragment in reader.feed(received):
                    yield fragment
                if reader.frame_count > frame_count:
                    timeouts.renew(END_MARK_GRACE_SECONDS if reader.ended else None)
            await _await_end_of_body(response, self._endpoint.close_grace_seconds)
            for fragment in reader.end():
                yield fragment
        finally:
            response.close()

    async def _open(self, call: ModelCall, timeouts: ProviderTimeouts) -> aiohttp.ClientResponse:
        refusals_left = MAX_REFUSED_FIELDS
        dialect = self._dialect
        while True:
            response = await self._post(call, dialect, timeouts)
            if 200 <= response.status < 300:
                return response
            body = await _error_body(response)
            changed = _without_refused_field(dialect, response.status, body) if refusals_left else None
            if changed is None:
                raise self._failure(response, body)
            refusals_left -= 1
            self._dialect = dialect = changed

    def _failure(self, response: aiohttp.ClientResponse, body: bytes) -> Exception:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return error_of_response(response.status, body, retry_after_seconds(headers, self._clock.now()))

    async def _post(self, call: ModelCall, dialect: Dialect, timeouts: ProviderTimeouts) -> aiohttp.ClientResponse:
        upstream = self._endpoint.model
        body = encode_call(call if upstream is None else call.model_copy(update={"model": upstream}), dialect)
        timeouts.check()
        if self._on_request is not None:
            self._on_request(call, body)
        request = self._session.post(self._url, data=body, headers=self._headers, allow_redirects=False)
        with _connection_errors():
            return await timeouts.wait(request)


def _without_refused_field(dialect: Dialect, status: int, body: bytes) -> Dialect | None:
    refused = refused_field(status, body, OPTIONAL_FIELDS)
    return None if refused is None else dialect.without(refused)


async def _receive(response: aiohttp.ClientResponse, reader: AnswerReader, timeouts: ProviderTimeouts) -> bytes:
    try:
        return await timeouts.wait(response.content.readany())
    except ModelStalled:
        if reader.ended:
            return b""
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise ModelStreamCut("the connection to the model's provider broke in the middle of the answer") from error


async def _await_end_of_body(response: aiohttp.ClientResponse, grace_seconds: float) -> None:
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(grace_seconds):
                await response.content.readany()


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """Read as much of an error's body as classifying needs; a failure to read it is ignored."""
    body = b""
    try:
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                while len(body) < ERROR_BODY_BYTES and (received := await response.content.readany()):
                    body += received
    finally:
        response.close()
    return body


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "ballast",
    }
    return headers | {"Authorization": f"Bearer {api_key}"} if api_key else headers


@contextmanager
def _connection_errors() -> Generator[None]:
    """Convert errors before the beginning of an answer to ours, whose messages contain no address."""
    try:
        yield
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
        raise ModelProtocolViolated("the model's provider does not speak HTTP") from error
    except aiohttp.ServerDisconnectedError as error:
        raise ModelUnavailable("the model's provider closed the connection without an answer") from error
    except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch) as error:
        raise ModelUnavailable("no secure connection to the model's provider") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ModelUnavailable("no connection to the model's provider") from error
