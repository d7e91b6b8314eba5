"""Models behind an OpenAI-compatible `POST {base_url}/chat/completions`, streamed."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp

from chat_shell.models.chat_completions.encoder import OPTIONAL_FIELDS, STANDARD_DIALECT, Dialect, encode_call
from chat_shell.models.chat_completions.reader import AnswerReader
from chat_shell.models.ports import ModelCall, ModelFragment
from chat_shell.models.transport.patience import Patience
from chat_shell.models.transport.provider_errors import error_of_response, refused_field, retry_after_seconds
from chat_shell.models.transport.session import ProviderSession
from shared.clock import Clock
from shared.errors import ModelProtocolViolated, ModelStalled, ModelStreamCut, ModelUnavailable
from shared.models.execution import remaining_seconds

MAX_CONCESSIONS = 4
"""A server may refuse so many of our own fields, one a request, before the call fails."""
END_MARK_GRACE_SECONDS = 5.0
"""After the finish reason: how long usage and end mark may take, for servers that never send them."""
CLOSE_GRACE_SECONDS = 0.05
"""After the end mark: how long the end of the body may take for the connection to be used again."""
ERROR_BODY_BYTES = 65_536
ERROR_BODY_SECONDS = 5.0


@dataclass(frozen=True)
class Endpoint:
    """Where a model is reached; `model` is its name there, None when it is the name it is offered under."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    idle_timeout_seconds: float = 60.0
    dialect: Dialect = STANDARD_DIALECT


class ChatCompletionsModel:
    """The port `Model` over HTTP.

    `on_request` is told every request as it is sent, byte for byte. What a server refuses of the fields that this
    adapter adds by itself is learned and left out from then on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        session: ProviderSession,
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
        patience = Patience(self._endpoint.idle_timeout_seconds, remaining_seconds(deadline, self._clock.now()))
        reader = AnswerReader()
        response = await self._open(call, patience)
        # Closing a response whose body has been read to its end gives the connection back; any other is cut off.
        try:
            while not reader.done:
                patience.check()
                frame_count = reader.frame_count
                received = await _receive(response, reader, patience)
                if not received:
                    break
                for fragment in reader.feed(received):
                    yield fragment
                if reader.frame_count > frame_count:
                    patience.renew(END_MARK_GRACE_SECONDS if reader.ended else None)
            await _let_end(response)
            for fragment in reader.end():
                yield fragment
        finally:
            response.close()

    async def _open(self, call: ModelCall, patience: Patience) -> aiohttp.ClientResponse:
        concessions_left = MAX_CONCESSIONS
        dialect = self._dialect
        while True:
            response = await self._post(call, dialect, patience)
            if 200 <= response.status < 300:
                return response
            body = await _error_body(response)
            conceded = _concede(dialect, response.status, body) if concessions_left else None
            if conceded is None:
                raise self._failure(response, body)
            concessions_left -= 1
            self._dialect = dialect = conceded

    def _failure(self, response: aiohttp.ClientResponse, body: bytes) -> Exception:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return error_of_response(response.status, body, retry_after_seconds(headers, self._clock.now()))

    async def _post(self, call: ModelCall, dialect: Dialect, patience: Patience) -> aiohttp.ClientResponse:
        upstream = self._endpoint.model
        body = encode_call(call if upstream is None else call.model_copy(update={"model": upstream}), dialect)
        patience.check()
        if self._on_request is not None:
            self._on_request(call, body)
        request = self._session.get().post(self._url, data=body, headers=self._headers, allow_redirects=False)
        with _connection_errors():
            return await patience.wait(request)


def _concede(dialect: Dialect, status: int, body: bytes) -> Dialect | None:
    refused = refused_field(status, body, OPTIONAL_FIELDS)
    return None if refused is None else dialect.without(refused)


async def _receive(response: aiohttp.ClientResponse, reader: AnswerReader, patience: Patience) -> bytes:
    try:
        return await patience.wait(response.content.readany())
    except ModelStalled:
        if reader.ended:
            return b""
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise ModelStreamCut("the connection to the model's provider broke in the middle of the answer") from error


async def _let_end(response: aiohttp.ClientResponse) -> None:
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(CLOSE_GRACE_SECONDS):
                await response.content.readany()


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """Read what of an error's body serves to classify it; a body that does not come is no further error."""
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
    """Translate what happens before an answer begins; addresses stay out of the message."""
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
