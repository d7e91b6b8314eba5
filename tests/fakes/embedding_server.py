"""A provider of vectors, scores and moderations over HTTP, in OpenAI's and Cohere's words, that can go wrong."""

import asyncio
from array import array
from base64 import b64encode
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from backend.embeddings.domain import TextKind, vector_numbers
from tests.fakes.meaning import FakeEmbedder, moderation_of

Answer = web.StreamResponse
Fault = Callable[["FakeEmbeddingServer", web.Request], Any]


class FakeEmbeddingServer:
    """Answers with the vectors of a `FakeEmbedder`; each fault in `faults` is taken for one request, in order.

    `bodies` are the bodies of all requests. `most_at_once` is the greatest number of requests at a time.
    """

    def __init__(self, *, sends_base64: bool = True, max_texts: int = 1_000, is_tei: bool = False) -> None:
        self.embedder = FakeEmbedder()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
        self.refused: set[str] = set()
        self.most_at_once = 0
        self.cut = asyncio.Event()
        self._at_once = 0
        self._sends_base64 = sends_base64
        self._max_texts = max_texts
        self._is_tei = is_tei
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/v1/rerank", self._rerank)
        app.router.add_post("/v1/moderations", self._moderations)
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._server.close()

    @property
    def base_url(self) -> str:
        """The address to configure."""
        return str(self._server.make_url("/v1"))

    @property
    def texts(self) -> list[str]:
        """All texts that have been sent for vectors."""
        return [text for body in self.bodies for text in body.get("input", [])]

    async def _embeddings(self, request: web.Request) -> Answer:
        body = await self._taken(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(0)
            return await self._fault(request) or await self._vectors(body)
        finally:
            self._at_once -= 1

    async def _taken(self, request: web.Request) -> dict[str, Any]:
        body: dict[str, Any] = orjson.loads(await request.read())
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        return body

    async def _fault(self, request: web.Request) -> Answer | None:
        fault = self.faults.popleft() if self.faults else self.always
        answer: Answer | None = await fault(self, request) if fault is not None else None
        return answer

    async def _vectors(self, body: dict[str, Any]) -> Answer:
        texts: list[str] = body["input"]
        if self.refused.intersection(texts) or len(texts) > self._max_texts:
            return web.json_response({"error": {"message": "no"}}, status=400)
        vectors = await self.embedder.embed(texts, TextKind.PASSAGE)
        found = [{"object": "embedding", "index": n, "embedding": self._shown(each)} for n, each in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        found.reverse()  # the order of the texts is that of `index`
        return web.json_response({"object": "list", "data": found, "model": body["model"], "usage": usage})

    def _shown(self, vector: Any) -> str | list[float]:
        numbers: array[float] = vector_numbers(vector)
        return b64encode(numbers).decode() if self._sends_base64 else numbers.tolist()

    async def _moderations(self, request: web.Request) -> Answer:
        body = await self._taken(request)
        return await self._fault(request) or web.json_response(moderation_of(body["input"]))

    async def _rerank(self, request: web.Request) -> Answer:
        body = await self._taken(request)
        if (answer := await self._fault(request)) is not None:
            return answer
        if ("texts" in body) is not self._is_tei:
            return web.json_response({"error": "missing field"}, status=422)
        texts: list[str] = body["texts" if self._is_tei else "documents"]
        scored = [(sum(word in text for word in body["query"].split()), n) for n, text in enumerate(texts)]
        name = "score" if self._is_tei else "relevance_score"
        results = [{"index": n, name: score / 10} for score, n in sorted(scored, reverse=True)]
        return web.json_response(results if self._is_tei else {"id": "r", "results": results})


def says(content: Any, status: int = 200, **headers: str) -> Fault:
    """Answer with this: bytes as they are, all else as JSON."""
    raw = content if isinstance(content, bytes) else orjson.dumps(content)
    shown = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(_: FakeEmbeddingServer, __: web.Request) -> Answer:
        return web.Response(body=raw, status=status, headers=shown, content_type="application/json")

    return answer


async def hangs(server: FakeEmbeddingServer, request: web.Request) -> Answer:
    """Never answer; `cut` is set when the client has gone."""
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        server.cut.set()
    raise AssertionError


async def closes(_: FakeEmbeddingServer, request: web.Request) -> Answer:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def breaks_off(_: FakeEmbeddingServer, request: web.Request) -> Answer:
    """Close the connection in the middle of an answer."""
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"data": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def floods(server: FakeEmbeddingServer, request: web.Request) -> Answer:
    """Send 100 MB of an answer; `cut` is set when the client has gone before its end."""
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        await response.write(b'{"data": ["')
        for _ in range(1600):
            await response.write(b"x" * 65_536)
    except (ConnectionError, asyncio.CancelledError):
        server.cut.set()
        raise
    return response
