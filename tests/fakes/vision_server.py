"""A vision model over HTTP, in OpenAI's words, that can go wrong."""

from collections import deque
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = str | tuple[int, Any]


class FakeVisionServer:
    """Answers each request with the next of `answers`, then says that there is no text; `bodies` are the requests.

    An answer is a text, or a pair of a status and a body.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = deque(answers)
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/v1/chat/completions", self._complete)
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

    async def _complete(self, request: web.Request) -> web.Response:
        self.bodies.append(orjson.loads(await request.read()))
        self.keys.append(request.headers.get("Authorization", ""))
        said = self.answers.popleft() if self.answers else "[no text]"
        status, body = (200, answer_of(said)) if isinstance(said, str) else said
        return web.json_response(body, status=status)


def answer_of(text: str | None, **choice: Any) -> dict[str, Any]:
    """Return a body of the API with a text in it."""
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message} | choice],
    }
