"""The official client with every answer kept as bytes, and all of them checked when a test ends.

The client builds its answers unchecked, so what it returns proves little: what is checked here is what was on
the wire. Nothing in the client is replaced but the transport below it, which passes everything through.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import orjson
from openai import AsyncOpenAI

from tests.e2e.client.answers import CHAT, check_answer
from tests.e2e.client.stream_rules import check_chunks, check_stream, events_in
from tests.e2e.pair import Pair
from tests.patience import PATIENCE_SECONDS

EVENT_STREAM = "text/event-stream"


@dataclass
class Exchange:
    """One request and its answer; `body` grows while a stream is read."""

    method: str
    url: str
    request_body: bytes
    status: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    is_whole: bool = False

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.url).query)

    @property
    def is_stream(self) -> bool:
        return self.headers["content-type"].startswith(EVENT_STREAM)

    @property
    def json(self) -> Any:
        """The answer, decoded."""
        return orjson.loads(bytes(self.body))

    @property
    def texts(self) -> list[str]:
        """The first text of each message of a page of items."""
        return [item["content"][0]["text"] for item in self.json["data"]]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream as far as it was read."""
        return events_in(bytes(self.body))

    def check(self) -> None:
        """Check the answer by the rules of its kind."""
        assert self.headers["x-request-id"]
        if self.is_stream and self.path == CHAT:
            check_chunks(bytes(self.body), is_whole=self.is_whole)
        elif self.is_stream:
            check_stream(bytes(self.body), is_whole=self.is_whole, first_number=self._first_number)
        else:
            assert self.headers["content-type"] == "application/json"
            check_answer(self.method, self.path, self.status, bytes(self.body))

    @property
    def _first_number(self) -> int:
        return int(self.query.get("starting_after", ["-1"])[0]) + 1


class _KeptStream(httpx2.AsyncByteStream):
    """Keeps what passes. The client reads on behind `[DONE]`, so a whole stream is seen to its end."""

    def __init__(self, stream: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._exchange.body += piece
            yield piece
        self._exchange.is_whole = True

    async def aclose(self) -> None:
        await self._stream.aclose()


class Wire:
    """All exchanges of a test, in the order of their answers' beginnings."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    @property
    def newest(self) -> Exchange:
        return self.exchanges[-1]

    def check(self) -> None:
        """Check all that came."""
        assert self.exchanges
        for exchange in self.exchanges:
            exchange.check()


class _KeptTransport(httpx2.AsyncHTTPTransport):
    """Puts every exchange of one client on the wire."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(verify=False)  # no TLS here, and its set-up takes longer than a test
        self._wire = wire

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        exchange = Exchange(request.method, str(request.url), request.content, answer.status_code, headers)
        self._wire.exchanges.append(exchange)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        kept = _KeptStream(answer.stream, exchange)
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=kept, extensions=answer.extensions)


@asynccontextmanager
async def wired_client(pair: Pair, user_id: str, wire: Wire) -> AsyncGenerator[AsyncOpenAI]:
    """Open the official client for this user; it repeats nothing by itself."""
    http_client = httpx2.AsyncClient(transport=_KeptTransport(wire), timeout=PATIENCE_SECONDS, trust_env=False)
    key = pair.key(user_id)
    async with AsyncOpenAI(
        base_url=f"{pair.backend_url}/v1", api_key=key, http_client=http_client, max_retries=0
    ) as client:
        yield client
