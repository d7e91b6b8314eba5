"""The demo model: `python -m deploy.demo.model --host HOST --port PORT`.

An OpenAI-compatible server that stands in for a real model, so that the main job can be tried without a key. It
offers `GET /v1/models` and `POST /v1/chat/completions`, streamed or whole; deploy/demo/replies.py says what it answers.
"""

import argparse
import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from aiohttp import web

from deploy.demo.prefix_cache import PrefixCache
from deploy.demo.replies import DemoReply, Json, reply_to
from shared.tokens import estimate_tokens

MODEL_NAME = "demo-model"
CREATED = 1_767_225_600
PAUSE_SECONDS = 0.01
MAX_BODY_BYTES = 64 * 1024 * 1024
_WORD = re.compile(r"[\u3000-\u9fff\uff00-\uffef]{1,2}|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+")

_pause_seconds = web.AppKey("pause_seconds", float)
_cache = web.AppKey("cache", PrefixCache)


def application(pause_seconds: float = PAUSE_SECONDS) -> web.Application:
    """Build the server; between two words it waits `pause_seconds`."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app[_pause_seconds] = pause_seconds
    app[_cache] = PrefixCache()
    app.add_routes([web.get("/v1/models", _models), web.post("/v1/chat/completions", _complete)])
    return app


async def _models(request: web.Request) -> web.Response:
    model = {"id": MODEL_NAME, "object": "model", "created": CREATED, "owned_by": "ballast"}
    return web.json_response({"object": "list", "data": [model]})


async def _complete(request: web.Request) -> web.StreamResponse:
    body = _parse(await request.read())
    if body is None:
        return _error(400, "the body must be a JSON object with a list of messages", "messages")
    if body.get("model") != MODEL_NAME:
        return _error(404, f"only the model {MODEL_NAME} is served here", "model")
    answer = _Answer(reply_to(body), body, request.app[_cache].read(body))
    if not body.get("stream"):
        return web.json_response(answer.whole())
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    with suppress(ConnectionResetError):  # who stops an answer leaves in the middle of it
        await response.prepare(request)
        for frame in answer.frames():
            await response.write(frame)
            await asyncio.sleep(request.app[_pause_seconds])
        await response.write_eof()
    return response


def _parse(raw: bytes) -> Json | None:
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    messages = cast(Json, body).get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in cast(list[Any], messages)):
        return None
    return cast(Json, body)


def _error(status: int, message: str, param: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return web.json_response({"error": error}, status=status)


class _Answer:
    """A reply in the forms of the API."""

    def __init__(self, reply: DemoReply, body: Json, cached_tokens: int) -> None:
        rendered = json.dumps(body, sort_keys=True)
        self._id = hashlib.sha256(rendered.encode()).hexdigest()[:24]
        self._reply = reply
        options = cast(Json, body.get("stream_options") or {})
        self._wants_usage = bool(options.get("include_usage"))
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        words = _WORD.findall(reply.text)
        self._words = words[:limit] if isinstance(limit, int) and limit > 0 else words
        self._reason = self._finish_reason(len(words))
        self._prompt_tokens = estimate_tokens(json.dumps(body.get("messages"), ensure_ascii=False))
        self._prompt_tokens += estimate_tokens(json.dumps(body.get("tools") or [], ensure_ascii=False))
        self._cached_tokens = min(cached_tokens, self._prompt_tokens)

    def whole(self) -> Json:
        """Return the answer of a request that is not streamed."""
        message: Json = {"role": "assistant", "content": "".join(self._words) or None}
        if self._reply.tool_name is not None:
            message["tool_calls"] = [self._tool_call()]
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return self._object("chat.completion", [choice], usage=self._usage())

    def frames(self) -> Iterator[bytes]:
        """Yield the frames of a streamed answer, one a word."""
        yield self._frame({"role": "assistant", "content": ""})
        if self._reply.tool_name is not None:
            yield self._frame({"tool_calls": [{"index": 0, **self._tool_call()}]})
        for word in self._words:
            yield self._frame({"content": word})
        yield self._frame({}, self._reason)
        if self._wants_usage:
            yield _event(self._object("chat.completion.chunk", [], usage=self._usage()))
        yield b"data: [DONE]\n\n"

    def _finish_reason(self, word_count: int) -> str:
        if self._reply.tool_name is not None:
            return "tool_calls"
        return "length" if len(self._words) < word_count else "stop"

    def _tool_call(self) -> Json:
        function = {"name": self._reply.tool_name, "arguments": self._reply.arguments}
        return {"id": f"call_{self._id}", "type": "function", "function": function}

    def _frame(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(self._object("chat.completion.chunk", [choice]))

    def _object(self, kind: str, choices: list[Json], **more: Any) -> Json:
        head = {"id": f"chatcmpl-{self._id}", "object": kind, "created": CREATED, "model": MODEL_NAME}
        return {**head, "choices": choices, **more}

    def _usage(self) -> Json:
        completion_tokens = estimate_tokens("".join(self._words) + self._reply.arguments)
        return {
            "prompt_tokens": self._prompt_tokens,
            "prompt_tokens_details": {"cached_tokens": self._cached_tokens},
            "completion_tokens": completion_tokens,
            "total_tokens": self._prompt_tokens + completion_tokens,
        }


def _event(chunk: Json) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def main() -> None:
    """Read the arguments and serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="The demo model, a stand-in for a real one.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--pause-seconds", type=float, default=PAUSE_SECONDS, help="between two words")
    arguments = parser.parse_args()
    app = application(arguments.pause_seconds)
    web.run_app(app, host=arguments.host, port=arguments.port, print=None, shutdown_timeout=1.0, access_log=None)


if __name__ == "__main__":
    main()
