"""Calls to a provider that answers one POST with one JSON text; nothing of an answer is held beyond its bounds."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

import aiohttp
import orjson

from backend.embeddings.domain import ProviderAddress
from shared.clock import Clock
from shared.errors import (
    InvalidRequest,
    ModelAuthenticationFailed,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelRequestRejected,
    ModelStalled,
    ModelUnavailable,
    ModelUnknownToProvider,
    Unavailable,
)
from shared.models.json_bounds import JsonBounds, JsonScanner
from shared.models.values import JsonObject, JsonValue
from shared.retries import retry_after_seconds
from shared.tracing import request_tracing

CONNECT_TIMEOUT_SECONDS = 5.0
MAX_ANSWER_DEPTH = 16

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "ballast",
}
_REJECTED = (400, 413, 422)


class AnswerBounds(NamedTuple):
    """What an answer may be: more bytes, or more values in arrays and objects, are no answer."""

    size_bytes: int
    values: int


@contextmanager
def told_as_unavailable() -> Generator[None]:
    """Raise an error of a provider as the ports of this package promise it: only what it refuses is not tried again."""
    try:
        yield
    except ModelRequestRejected:
        raise
    except ModelError as error:
        raise Unavailable(error.message, retry_after_seconds=error.retry_after_seconds) from error


def open_provider_session() -> aiohttp.ClientSession:
    """Open a session without cookies and without proxies of the environment, that expands no compressed answer."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        middlewares=request_tracing(),
    )


class JsonCalls:
    """Sends JSON to one path of a provider and reads JSON; errors tell neither text nor address."""

    def __init__(
        self,
        address: ProviderAddress,
        path: str,
        session: aiohttp.ClientSession,
        clock: Clock,
        *,
        timeout_seconds: float,
    ) -> None:
        self._name = address.name
        self._url = address.base_url.rstrip("/") + path
        self._headers = _HEADERS | ({"Authorization": f"Bearer {address.api_key}"} if address.api_key else {})
        self._proxy = address.proxy
        self._session = session
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)

    async def post(self, body: JsonObject, bounds: AnswerBounds) -> JsonValue:
        """Send a body and return the answer.

        Raises:
            ModelError: the provider is away, slow, refuses, or answers with something else.
        """
        try:
            async with self._session.post(
                self._url,
                data=self._encode(body),
                headers=self._headers,
                timeout=self._timeout,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                if response.status != 200:
                    raise self._refusal(response)
                return await self._read(response, bounds)
        except aiohttp.ConnectionTimeoutError as error:
            raise ModelUnavailable(f"no connection to {self._name} in time") from error
        except TimeoutError as error:
            raise ModelStalled(f"{self._name} did not answer in time") from error
        except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
            raise ModelProtocolViolated(f"{self._name} sent what is no whole answer of HTTP") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(f"no connection to {self._name}") from error

    def _encode(self, body: JsonObject) -> bytes:
        try:
            return orjson.dumps(body)
        except orjson.JSONEncodeError as error:  # half of a surrogate pair, which UTF-8 cannot carry
            raise ModelRequestRejected(f"a text for {self._name} is no Unicode text") from error

    async def _read(self, response: aiohttp.ClientResponse, bounds: AnswerBounds) -> JsonValue:
        limits = JsonBounds(values=bounds.values, depth=MAX_ANSWER_DEPTH, outside_bytes=bounds.size_bytes)
        scan, body = JsonScanner(limits), bytearray()
        try:
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > bounds.size_bytes:
                    raise ModelProtocolViolated(f"{self._name} sent an answer of more than {bounds.size_bytes} bytes")
                scan.feed(piece)
            scan.end()
            answer: JsonValue = orjson.loads(body)
        except (InvalidRequest, orjson.JSONDecodeError) as error:
            raise ModelProtocolViolated(f"{self._name} sent an answer that is not the JSON of its API") from error
        return answer

    def _refusal(self, response: aiohttp.ClientResponse) -> ModelError:
        status, name = response.status, self._name
        headers = {each.lower(): value for each, value in response.headers.items()}
        wait = retry_after_seconds(headers, self._clock.now())
        if status in (401, 403):
            return ModelAuthenticationFailed(f"{name} refuses the configured credential (status {status})")
        if status == 402:
            return ModelQuotaExhausted(f"the quota at {name} is used up (status {status})")
        if status == 404:
            return ModelUnknownToProvider(f"{name} has no such path or no such model (status {status})")
        if status == 429:
            return ModelRateLimited(f"{name} asks to slow down (status {status})", retry_after_seconds=wait)
        if status in _REJECTED:
            return ModelRequestRejected(f"{name} rejected the request (status {status})")
        if status >= 500 or status == 408:
            return ModelUnavailable(f"{name} failed (status {status})", retry_after_seconds=wait)
        return ModelProtocolViolated(f"{name} answered with something else (status {status})")
