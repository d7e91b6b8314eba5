"""Values that the tests of turns share."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from backend.conversations.domain.item_bodies import NewId
from backend.conversations.domain.responses import ConversationSettings
from backend.knowledge.domain.tickets import SearchOptions
from backend.openai_api.domain.client_tools import function_definitions
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import ResponseBody, new_body
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.turn_request import TurnRequest
from shared.ids import IdPrefix
from shared.models.events import Usage
from tests.fakes.parsed_requests import parse_turn_request

CREATED_AT = datetime.fromtimestamp(1_700_000_000, UTC)
NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
USAGE = Usage(input_tokens=11, cached_tokens=4, cache_write_tokens=0, output_tokens=7, reasoning_tokens=2)


def counting_ids() -> NewId:
    """Make ids that can be told apart in a test: `msg_1`, `rs_2`, …"""
    counter: Iterator[int] = itertools.count(1)

    def new_id(prefix: IdPrefix) -> str:
        return f"{prefix}_{next(counter)}"

    return new_id


def request(**fields: Any) -> TurnRequest:
    """Make a request as a caller would write it."""
    return parse_turn_request(orjson.dumps({"input": "Hello", **fields}))


def fresh_body(asked: TurnRequest, **settings: Any) -> ResponseBody:
    """Build the response object of a turn that begins with these settings."""
    plain: dict[str, Any] = {
        "model": "demo-model",
        "instructions": "",
        "functions": (),
        "knowledge_base_ids": (),
        "search": SearchOptions(),
    }
    return new_body(asked, ConversationSettings(**{**plain, **settings}), "resp_1", "conv_1", CREATED_AT)


def projection(*, with_results: bool = True, **fields: Any) -> ResponseProjection:
    """Make a projection of a fresh response."""
    asked = request(**fields)
    body = fresh_body(asked, functions=function_definitions(asked.tools or ()))
    return ResponseProjection(body, counting_ids(), with_results=with_results)


def decoded(events: list[LoggedEvent]) -> list[dict[str, Any]]:
    """Decode events."""
    return [orjson.loads(event.body) for event in events]
