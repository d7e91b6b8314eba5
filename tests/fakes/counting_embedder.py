"""An embedder as a process of its own, which counts what it is asked for: `python -m tests.fakes.counting_embedder`.

Each call for passages leaves a line in a file before it is answered, and outlives a kill there.
"""

import argparse
import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from backend.embeddings.domain import TextKind
from tests.fakes.meaning import FakeEmbedder


class CountingEmbedder:
    """Answers like OpenAI with the vectors of a `FakeEmbedder`; `input_type` says which calls are for passages.

    `seconds_of_call` is how long a call for several passages takes: those of questions are answered at once.
    """

    def __init__(self, path: Path, seconds_of_call: float, dimension: int) -> None:
        self._path = path
        self._seconds_of_call = seconds_of_call
        self._embedder = FakeEmbedder(dimension=dimension)

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/health", self._health)
        return app

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _embeddings(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = orjson.loads(await request.read())
        texts: list[str] = body["input"]
        if body["input_type"] == TextKind.PASSAGE:
            with self._path.open("ab") as file:
                file.write(orjson.dumps(texts) + b"\n")
            await asyncio.sleep(self._seconds_of_call)
        vectors = await self._embedder.embed(texts, TextKind.PASSAGE)
        found = [{"index": place, "embedding": b64encode(each).decode()} for place, each in enumerate(vectors)]
        return web.json_response({"object": "list", "data": found, "model": body["model"]})


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--asked", type=Path, required=True, help="the file of what was asked")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--dimension", type=int, default=32)
    given = parser.parse_args()
    app = CountingEmbedder(given.asked, given.seconds, given.dimension).app()
    web.run_app(app, host="127.0.0.1", port=given.port, print=None)


if __name__ == "__main__":
    main()
