"""The port `Model` over HTTP, for every provider API that answers one POST with a stream of events."""

import asyncio
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import aiohttp

from chat_shell.models.ports import ModelCall, ModelFragment
from chat_shell.models.transport.assembling import FrameAssembler
from chat_shell.models.transport.diagnoses import LastAnswers
from chat_shell.models.transport.observing import ObserveCall, observed
from chat_shell.models.transport.provider_errors import error_of_response
from chat_shell.models.transport.read_pace import READ_BYTES, ReadPace
from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.clock import Clock
from shared.errors import ModelError, ModelProtocolViolated, ModelStalled, ModelStreamCut, ModelUnavailable
from shared.models.execution import count_seconds_left
from shared.retries import retry_after_seconds
from shared.server_sent_events import EventDecoder
from shared.tcp_keepalive import make_asking_socket
from shared.tracing import request_tracing

MAX_REFUSALS = 4
"""How often a server may refuse something that an adapter adds by itself, once a request, before the call fails."""
END_MARK_GRACE_SECONDS = 5.0
"""How long usage and end mark may take after the finish reason, since some servers never send them."""
CLOSE_GRACE_SECONDS = 0.05
"""How long the end of the body may take after the end mark, so that the connection can be used again."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a model; `model` is its name at the provider, None where that is the name in the call.

    `proxy` is the address of the proxy on the way there, with the proxy's password if it has one. `affinity_header` is
    the header in which a router in front of engines gets the keyed hash of the conversation. `cache_salt` is the secret
    of which each tenant's salt is made. With `last_answers` the provider is asked why its cache was missed.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    idle_timeout_seconds: float = 60.0
    close_grace_seconds: float = CLOSE_GRACE_SECONDS
    proxy: str | None = field(default=None, repr=False)
    affinity_header: str | None = None
    cache_salt: str | None = field(default=None, repr=False)
    last_answers: LastAnswers | None = None

    def address(self, call: ModelCall) -> ModelCall:
        """Return a call as this model's provider gets it."""
        changes = {} if self.model is None else {"model": self.model}
        if self.cache_salt is not None:
            changes["cache_salt"] = salt_of(self.cache_salt, call.tenant)
        if self.last_answers is not None:
            changes["compared_with"] = self.last_answers.before(call)
        return call.model_copy(update=changes) if changes else call

    def headers_of(self, call: ModelCall) -> dict[str, str]:
        """Return the headers that a call has beside those of all calls."""
        return {self.affinity_header: call.cache_key} if self.affinity_header and call.cache_key else {}


def salt_of(secret: str, tenant: str) -> str:
    """Return the salt of a tenant, which is no other's and nobody can guess: 256 bits, as vLLM advises."""
    digest = hmac.digest(secret.encode(), b"cache_salt\0" + tenant.encode(), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")


class ProviderApi(Protocol):
    """How one provider API writes requests and reads answers; a value, so that it can be replaced by a changed one."""

    @property
    def path(self) -> str:
        """The path behind the base URL, such as `/chat/completions`."""
        ...

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers by which the API knows the caller, and others of its own."""
        ...

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; equal calls give equal bytes.

        Raises:
            InvalidRequest: the call asks for something that the API does not have; `param` names it.
        """
        ...

    def assembler(self, call: ModelCall) -> FrameAssembler:
        """Return what reads the answer to a call."""
        ...

    def avoid(self, status: int, body: bytes) -> "Avoidance | None":
        """Return how to send a request that was refused for something that the adapter added by itself."""
        ...


@dataclass(frozen=True)
class Avoidance:
    """The API without what a server has refused: for all later calls, or for the one call alone."""

    api: ProviderApi
    is_lasting: bool = True


class StreamedModel:
    """The port `Model` over HTTP.

    `on_request` is called with each request, byte for byte as it is sent. What the adapter adds by itself and the
    server refuses for good is left out of all later requests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        api: ProviderApi,
        session: aiohttp.ClientSession,
        clock: Clock,
        observers: Sequence[ObserveCall] = (),
        on_request: Callable[[ModelCall, bytes], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._api = api
        self._session = session
        self._clock = clock
        self._observers = observers
        self._on_request = on_request
        self._url = endpoint.base_url.rstrip("/") + api.path
        self._headers = REQUEST_HEADERS | api.headers(endpoint.api_key)

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        with observed(self._observers, call) as told:
            remaining = count_seconds_left(deadline, self._clock.now())
            timeouts = ProviderTimeouts(self._endpoint.idle_timeout_seconds, remaining)
            answer = self._api.assembler(call)
            reader, pace = AnswerReader(answer), ReadPace()
            response = await self._open(call, timeouts)
            with _reading(response), timeouts.watch(response.content.set_exception):
                while not answer.done:
                    frame_count = reader.frame_count
                    timeouts.begin_wait()
                    try:
                        received = await response.content.read(READ_BYTES)
                    except ModelStalled:
                        if not answer.ended:
                            raise
                        break
                    timeouts.end_wait()
                    if not received:
                        break
                    for fragment in reader.feed(received):
                        yield told.pass_on(fragment)
                    await pace.keep(answer.frame_count)
                    if reader.frame_count > frame_count:
                        timeouts.renew(END_MARK_GRACE_SECONDS if answer.ended else None)
                else:
                    await await_end_of_body(response, self._endpoint.close_grace_seconds)
                for fragment in reader.end():
                    yield told.pass_on(fragment)

    async def _open(self, call: ModelCall, timeouts: ProviderTimeouts) -> aiohttp.ClientResponse:
        refusals_left = MAX_REFUSALS
        api = self._api
        while True:
            response = await self._post(call, api, timeouts)
            if 200 <= response.status < 300:
                return response
            body = await read_error_body(response)
            avoidance = api.avoid(response.status, body) if refusals_left else None
            if avoidance is None:
                raise self._failure(response, body, call)
            refusals_left -= 1
            api = avoidance.api
            if avoidance.is_lasting and not call.parameters.extra:  # which may be what was refused
                self._api = api

    def _failure(self, response: aiohttp.ClientResponse, body: bytes, call: ModelCall) -> ModelError:
        headers = {name.lower(): value for name, value in response.headers.items()}
        wait = retry_after_seconds(headers, self._clock.now())
        error = error_of_response(response.status, body, wait, unchecked=tuple(call.parameters.extra or ()))
        error.request_id = request_id_in(headers)
        return error

    async def _post(self, call: ModelCall, api: ProviderApi, timeouts: ProviderTimeouts) -> aiohttp.ClientResponse:
        body = api.encode(self._endpoint.address(call))
        timeouts.check()
        if self._on_request is not None:
            self._on_request(call, body)
        headers = self._headers | self._endpoint.headers_of(call)
        request = self._session.post(
            self._url, data=body, headers=headers, allow_redirects=False, proxy=self._endpoint.proxy
        )
        with connection_errors():
            return await timeouts.wait(request)


@contextmanager
def _reading(response: aiohttp.ClientResponse) -> Generator[None]:
    """Read a response; its errors tell the id of the request.

    Closing a response that was read to its end returns the connection to the pool; any other close cuts it.
    """
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        cut = ModelStreamCut("the connection to the model's provider broke in the middle of the answer")
        cut.request_id = request_id_in(response.headers)
        raise cut from error
    except ModelError as error:
        error.request_id = request_id_in(response.headers)
        raise
    finally:
        response.close()


ERROR_BODY_BYTES = 65_536
ERROR_BODY_SECONDS = 5.0

REQUEST_HEADERS = {
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "ballast",
}

_REQUEST_ID_HEADERS = ("x-request-id", "request-id")
"""OpenAI's name and Anthropic's, in both of which servers with their protocols send it."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id_in(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request; None where it sent none, or something that is no id."""
    given = next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), "")
    return given if _REQUEST_ID.fullmatch(given) else None


async def await_end_of_body(response: aiohttp.ClientResponse, grace_seconds: float) -> None:
    """Wait a little for the end of the body, so that the connection can be used again."""
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(grace_seconds):
                await response.content.readany()


async def read_error_body(response: aiohttp.ClientResponse) -> bytes:
    """Read as much of an error's body as classifying needs, and close it; a failure to read it is ignored."""
    body = b""
    try:
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                while len(body) < ERROR_BODY_BYTES and (received := await response.content.readany()):
                    body += received
    finally:
        response.close()
    return body


@contextmanager
def connection_errors() -> Generator[None]:
    """Convert errors before the beginning of an answer to ours, whose messages contain no address."""
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:
        raise ModelUnavailable("the proxy on the way to the model's provider refuses the connection") from error
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
        raise ModelProtocolViolated("the model's provider does not speak HTTP") from error
    except aiohttp.ServerDisconnectedError as error:
        raise ModelUnavailable("the model's provider closed the connection without an answer") from error
    except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch) as error:
        raise ModelUnavailable("no secure connection to the model's provider") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ModelUnavailable("no connection to the model's provider") from error


CONNECT_TIMEOUT_SECONDS = 10.0


def open_session() -> aiohttp.ClientSession:
    """Open a session without cookies, without proxies from the environment, and with a timeout on connecting only.

    The number of connections is not limited here: the number of turns is, when they are admitted.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, socket_factory=make_asking_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
        middlewares=request_tracing(),
    )


MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Far longer than any real frame."""


class AnswerReader:
    """Reads a body in pieces of any size. Its first byte determines whether it is a stream or one JSON object.

    The content type is not used: servers that ignore `stream` answer with JSON, and proxies mislabel both.
    """

    def __init__(self, assembler: FrameAssembler) -> None:
        self._assembler = assembler
        too_long = ModelProtocolViolated("the model's provider sent a frame without an end")
        self._events = EventDecoder(MAX_EVENT_BYTES, too_long)
        self._whole: bytearray | None = None
        self._started = False

    @property
    def frame_count(self) -> int:
        """The number of frames so far; of an answer that is not streamed, the number of its bytes."""
        return self._assembler.frame_count if self._whole is None else len(self._whole)

    def feed(self, received: bytes) -> Iterable[ModelFragment]:
        """Take received bytes and return their fragments, over which the caller iterates before the next call.

        Raises:
            ModelError: the bytes are malformed or report a failure; raised after the fragments that precede it.
        """
        if not self._started:
            received = self._start(received)
        if self._whole is None:
            return self._assembler.feed(self._events.feed(received))
        self._whole += received
        if len(self._whole) > MAX_EVENT_BYTES:
            raise ModelProtocolViolated("the model's provider sent an answer without an end")
        return []

    def end(self) -> list[ModelFragment]:
        """Return the remaining fragments once the body has ended; the last one is the end of the answer.

        Raises:
            ModelError: the answer is incomplete, malformed or empty, or reports a failure.
        """
        rest = self._end_of_stream() if self._whole is None else self._assembler.feed_whole(bytes(self._whole))
        return [*rest, self._assembler.finish()]

    def _start(self, received: bytes) -> bytes:
        received = received.lstrip()
        if received:
            self._started = True
            if received.startswith(b"{"):
                self._whole = bytearray()
            elif received.startswith(b"<"):
                raise ModelProtocolViolated("the model's provider answered with a page, not with an answer")
        return received

    def _end_of_stream(self) -> list[ModelFragment]:
        try:
            rest = list(self._assembler.feed(self._events.flush()))
        except ModelProtocolViolated as error:
            raise ModelStreamCut("the model's provider broke off in the middle of a frame") from error
        if self._started and not self._assembler.frame_count and not self._assembler.done:
            raise ModelProtocolViolated("the model's provider answered with something that is no stream")
        return rest
