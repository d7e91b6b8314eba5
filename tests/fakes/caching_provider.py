"""A model provider with a cache of prefixes that can be missed in each way, as a process of its own.

The newest words of the user say what becomes of the cache before it is looked at: `[evict]` drops the end of what was
sent before, `[elsewhere]` is a machine that has none of it, `[rewritten]` a proxy that has changed the request on its
way. Where the request asks why the cache was missed, the provider says it in the words of its API.
"""

import argparse
import asyncio
from typing import Any, cast

import orjson

from tests.fakes.model_server import RecordedRequest, Reply
from tests.fakes.model_server.__main__ import serve

Body = dict[str, Any]

LEAST_TOKENS = 1_024
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_SAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/v1/responses": ({"type": "cache_hit"}, {"type": "cache_miss", "reason": "input_changed"}),
    "/v1/messages": ({}, {"cache_miss_reason": {"type": "messages_changed"}}),
}
"""What it says of a request that begins with the one before, and of one that does not."""


class Provider:
    """Keeps what the newest request of each conversation began with, part by part."""

    def __init__(self) -> None:
        self._sent: dict[str, list[bytes]] = {}

    def answer(self, request: RecordedRequest) -> Reply:
        """Answer with what was read from the cache, and with why it was no more where that is asked for."""
        body, name = request.json_body, request.headers["x-conversation"]
        parts, before = parts_of(body), self._sent.get(name, [])
        self._sent[name] = parts
        asked = b"".join(parts[-2:])
        if b"[evict]" in asked:
            before = before[:-1]
        if b"[elsewhere]" in asked or b"[rewritten]" in asked:
            before = []
        read = sum(map(len, _shared(before, parts))) // 4
        tokens = sum(map(len, parts)) // 4
        cached = read if read >= LEAST_TOKENS else 0
        usage: dict[str, Any] = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
        says = _SAYS[request.path][b"[rewritten]" in asked] if _is_asked(body) else None
        return Reply(text=("Yes.",), usage=usage, cache_diagnostics=says)


def _is_asked(body: Body) -> bool:
    asked: Body = body.get("diagnostics") or body.get("prompt_cache_options") or {}
    return bool(asked.get("previous_message_id") or asked.get("comparison_response_id"))


def parts_of(body: Body) -> list[bytes]:
    """Return what a cache compares, in its order and without marks: tools, system, and each block of a message."""
    parts: list[Any] = [body.get("tools"), body.get("system")]
    messages: list[Body] = body.get("messages") or body.get("input") or []
    for message in messages:
        content: Any = message["content"]
        blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
        parts += [[message["role"], block] for block in blocks]
    return [orjson.dumps(_unmarked(part)) for part in parts]


def _unmarked(part: Any) -> Any:
    match part:
        case dict():
            named = cast("dict[str, Any]", part)
            return {name: _unmarked(value) for name, value in named.items() if name not in _MARKS}
        case list():
            return [_unmarked(each) for each in cast("list[Any]", part)]
        case _:
            return part


def _shared(before: list[bytes], now: list[bytes]) -> list[bytes]:
    same = [one == other for one, other in zip(before, now, strict=False)]
    return now[: (*same, False).index(False)]


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", action="append", default=[])
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, tuple(arguments.model), None, Provider().answer))


if __name__ == "__main__":
    main()
