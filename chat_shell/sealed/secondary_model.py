"""The client of the secondary model, an OpenAI-compatible API that only the operator's settings choose."""

from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Protocol

import aiohttp
import orjson
from pydantic import SecretStr

from chat_shell.sealed.summary_prompt import Messages
from shared.models.safe_summary import Failure
from shared.models.values import JsonObject

MAX_BODY_BYTES = 131_072
"""Limit of the whole response: JSON may escape a Chinese character with 6 bytes, and may contain reasoning text.

The reply in it is limited by the gate, which must also look for canaries in a reply that is too long.
"""

CONNECT_TIMEOUT_SECONDS = 10.0
ATTEMPTS = 2


class SecondaryModel(Protocol):
    """Answers a prompt with the bytes of its reply; `name` is its name at its provider."""

    @property
    def name(self) -> str:
        """Return the name that stands in the audit and in the key of kept summaries."""
        ...

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes | Failure:
        """Ask once, for a reply by a JSON schema if one is given; return it, or why there is none.

        The caller sets the timeout.
        """
        ...


@dataclass(frozen=True, slots=True)
class SecondaryEndpoint:
    """The address of the operator's secondary model; `base_url` ends before `/chat/completions`.

    `proxy` is the address of the proxy on the way there, with the proxy's password if it has one.
    Where it `is_salted`, nothing that the provider caches of a call is found by another, whoever asks.
    """

    model: str
    base_url: str
    api_key: SecretStr | None
    proxy: str | None = field(default=None, repr=False)
    is_salted: bool = False


class ChatCompletionsSecondary:
    """Asks without streaming, with one retry when the connection fails. The caller closes the session."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: SecondaryEndpoint):
        self._session = session
        self._model = endpoint.model
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._headers = _headers(endpoint.api_key)
        self._proxy = endpoint.proxy
        self._is_salted = endpoint.is_salted

    @property
    def name(self) -> str:
        """Return the name at the provider."""
        return self._model

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes | Failure:
        """Ask once; see the protocol."""
        salt = {"cache_salt": token_urlsafe(32)} if self._is_salted else {}
        form = {} if schema is None else {"response_format": _wrap_schema(schema)}
        body = orjson.dumps({"model": self._model, "messages": messages, "stream": False, **salt, **form})
        answer: bytes | Failure = Failure.MODEL_UNAVAILABLE
        for _ in range(ATTEMPTS):
            try:
                answer = await self._post(body)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.ClientHttpProxyError, OSError):
                continue
            break
        return answer if isinstance(answer, Failure) else _reply_in(answer)

    async def _post(self, body: bytes) -> bytes | Failure:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS)
        async with self._session.post(
            self._url, data=body, headers=self._headers, timeout=timeout, allow_redirects=False, proxy=self._proxy
        ) as response:
            if response.status != 200:
                return Failure.MODEL_UNAVAILABLE
            received = await read_at_most(response, MAX_BODY_BYTES)
        return Failure.INVALID_OUTPUT if received is None else received


def _wrap_schema(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "findings", "strict": True, "schema": schema}}


def _headers(api_key: SecretStr | None) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "ballast"}
    return headers | {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else headers


def _reply_in(body: bytes) -> bytes | Failure:
    try:
        answer = orjson.loads(body)
    except ValueError:
        return Failure.INVALID_OUTPUT
    match answer:
        case {"choices": [{"message": {"content": str(reply)}}, *_]}:
            return reply.encode()
        case _:
            return Failure.INVALID_OUTPUT


_CHUNK_BYTES = 65_536


async def read_at_most(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes | None:
    """Return the body, or None as soon as it is longer than the limit: the rest is not read."""
    body = bytearray()
    async for received in response.content.iter_chunked(_CHUNK_BYTES):
        body += received
        if len(body) > limit_bytes:
            return None
    return bytes(body)
