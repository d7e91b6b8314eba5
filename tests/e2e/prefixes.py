"""What of one model request the next one of its conversation must begin with, byte for byte."""

import re
from collections.abc import Sequence
from itertools import pairwise

import orjson

from tests.e2e.turns import Body, messages_in
from tests.fakes.model_server import RecordedRequest

_MESSAGES = b'"messages":'
_OWN = re.compile(
    rb'(?<="prompt_cache_key":")[^"]+'  # of the conversation
    rb"|(?<=\\n\\n<time>)[^<]+"  # of the minute
    rb"|\b(?:kb|doc)_[0-9a-f]{32}"  # of the database
)


def opening(request: RecordedRequest) -> bytes:
    """Return a body from its beginning to its last message: model, cache key, tools, messages."""
    start = request.body.index(_MESSAGES) + len(_MESSAGES)
    opened = request.body[:start] + orjson.dumps(request.json_body["messages"])[:-1]
    assert request.body.startswith(opened)
    return opened


def added(earlier: RecordedRequest, later: RecordedRequest) -> list[Body]:
    """Check that one request begins with all of another, and return the messages that come on top."""
    opened = opening(earlier) + b","
    assert later.body[: len(opened)] == opened
    messages: list[Body] = later.json_body["messages"]
    return messages[len(earlier.json_body["messages"]) :]


def check_never_moves(requests: Sequence[RecordedRequest]) -> None:
    """Check that each request of a conversation begins with all of the one before."""
    for earlier, later in pairwise(requests):
        assert added(earlier, later)


def neutral(request: RecordedRequest) -> bytes:
    """Return the whole body without what only another conversation, minute or database makes different."""
    return _OWN.sub(b"", request.body)


def check_pairs(messages: Sequence[Body]) -> None:
    """Check that behind each message with calls stand their results, in call order, and no others anywhere."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert waiting == []


def asking(requests: Sequence[RecordedRequest], words: str) -> RecordedRequest:
    """Return the first request whose last message is the user's and begins so."""
    return next(one for one in requests if str(messages_in(one)[-1]["content"]).startswith(words))
