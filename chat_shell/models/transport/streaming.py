"""The port `Model` over HTTP, for every provider API that answers one POST with a stream of events."""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import aiohttp

from chat_shell.models.ports import ModelCall, ModelFragment
from chat_shell.models.transport.assembling import FrameAssembler
from chat_shell.models.transport.connection import (
    REQUEST_HEADERS,
    await_end_of_body,
    connection_errors,
    read_error_body,
    request_id_in,
)
from chat_shell.models.transport.observing import ObserveCall, observed
from chat_shell.models.transport.provider_errors import error_of_response
from chat_shell.models.transport.reader import AnswerReader
from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.clock import Clock
from shared.errors import ModelError, ModelStalled, ModelStreamCut
from shared.models.execution import remaining_seconds
from shared.retries import retry_after_seconds

MAX_REFUSALS = 4
"""How often a server may refuse something that an adapter adds by itself, once a request, before the call fails."""
END_MARK_GRACE_SECONDS = 5.0
"""How long usage and end mark may take after the finish reason, since some servers never send them."""
CLOSE_GRACE_SECONDS = 0.05
"""How long the end of the body may take after the end mark, so that the connection can be used again."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a model; `model` is its name at the provider, None where that is the name in the call.

    `proxy` is the address of the proxy on the way there, with the proxy's password if it has one.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    idle_timeout_seconds: float = 60.0
    close_grace_seconds: float = CLOSE_GRACE_SECONDS
    proxy: str | None = field(default=None, repr=False)


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

    def avoiding(self, status: int, body: bytes) -> "Avoidance | None":
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
            remaining = remaining_seconds(deadline, self._clock.now())
            timeouts = ProviderTimeouts(self._endpoint.idle_timeout_seconds, remaining)
            reader = AnswerReader(self._api.assembler(call))
            response = await self._open(call, timeouts)
            with _reading(response), timeouts.watch(response.content.set_exception):
                while not reader.done:
                    frame_count = reader.frame_count
                    timeouts.begin_wait()
                    try:
                        received = await response.content.readany()
                    except ModelStalled:
                        if not reader.ended:
                            raise
                        break
                    timeouts.end_wait()
                    if not received:
                        break
                    for fragment in reader.feed(received):
                        yield told.pass_on(fragment)
                    if reader.frame_count > frame_count:
                        timeouts.renew(END_MARK_GRACE_SECONDS if reader.ended else None)
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
            avoidance = api.avoiding(response.status, body) if refusals_left else None
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
        upstream = self._endpoint.model
        body = api.encode(call if upstream is None else call.model_copy(update={"model": upstream}))
        timeouts.check()
        if self._on_request is not None:
            self._on_request(call, body)
        request = self._session.post(
            self._url, data=body, headers=self._headers, allow_redirects=False, proxy=self._endpoint.proxy
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
