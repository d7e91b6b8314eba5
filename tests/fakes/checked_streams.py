"""Streams of both APIs as clients read them: whole, and each event what its type says."""

from typing import Any, cast

import orjson

from backend.turns.http.event_stream import DONE
from backend.turns.http.routes import ResponsesFormat
from backend.turns.http.routes_chat import ChatFormat
from backend.turns.http.turn_answers import ApiFormat, TurnEndpoint
from tests.fakes.openai_types import check_chunk, check_event
from tests.fakes.parsed_requests import parse_chat_request

SAID = '{"messages": [{"role": "user", "content": "Hi"}]}'


def api_formats() -> list[ApiFormat]:
    return [ResponsesFormat(), ChatFormat(cast(TurnEndpoint, None), parse_chat_request(SAID.encode()))]


def checked(stream: bytes, api_format: ApiFormat) -> dict[str, Any]:
    """Check that a stream is whole and its events are what their types say; return the last one."""
    assert stream.endswith(b"\n\n" + DONE)
    bodies = [frame.rpartition(b"data: ")[2] for frame in stream.removesuffix(b"\n\n" + DONE).split(b"\n\n")]
    if isinstance(api_format, ResponsesFormat):
        events = [check_event(body) for body in bodies]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[0]["type"] == "response.created"
        return events[-1]
    *chunks, last = bodies
    for chunk in chunks:
        check_chunk(chunk)
    return orjson.loads(last)
