"""The routes of responses, as OpenAI's API defines them."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Literal

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel

from backend.conversations.domain.item_bodies import FILE_SEARCH_RESULTS, Include
from backend.conversations.domain.item_pages import ItemList, ItemPageQuery, item_list
from backend.foundation.http.bodies import find_held_body
from backend.foundation.http.errors import error_body, render
from backend.foundation.http.inline_schema import describe_body
from backend.foundation.http.json_body import new_router
from backend.foundation.http.shapes import Deleted
from backend.identity.http.caller import CallerDep, OnceDep
from backend.openai_api.domain.response_events import LoggedEvent, break_off
from backend.openai_api.domain.response_object import ResponseBody, show_body, usage_body
from backend.openai_api.domain.turn_request import TurnRequest, turn_request_cooperatively
from backend.turns.domain.input_requests import (
    CompactRequest,
    InputTokensRequest,
    compact_request_cooperatively,
    input_tokens_request_cooperatively,
)
from backend.turns.http.event_stream import frames, watch_caller
from backend.turns.http.refused_early import RESPONSES_PATH
from backend.turns.http.turn_answers import (
    EndpointDep,
    ServicesDep,
    TurnRoute,
    describe_answers,
    one_answer,
    read_noting,
)
from shared.errors import BallastError, InvalidRequest
from shared.models.error_reports import report_of
from shared.models.values import JsonObject

router = new_router("Responses", TurnRoute)
ANSWERS = describe_answers("The response", "its events")
NOTHING_MORE: list[Include] = []
IncludeParam = Annotated[list[Include], Query(alias="include[]")]
AfterParam = Annotated[int | None, Query(ge=0, le=2**53, description="Events after this number; all without it.")]


class InputTokens(BaseModel):
    """The number of tokens that a turn would send."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


class ResponsesFormat:
    """The words of OpenAI's Responses API, in which responses and their events are stored, for one answer.

    Of a stream the reader knows the events up to the number `newest`.
    """

    def __init__(self, newest: int = -1) -> None:
        self._newest = newest

    async def whole(self, body: ResponseBody, *, with_results: bool) -> JsonObject:
        """Return the response object."""
        return show_body(body, with_results=with_results)

    def frames(self, events: Sequence[LoggedEvent]) -> bytes:
        """Return the events under their types."""
        self._newest = events[-1].sequence_number
        return frames(events)

    async def last_frames(self) -> bytes:
        """Return nothing: the terminal event is the last."""
        return b""

    def encode_error(self, body: ResponseBody, error: BallastError) -> bytes:
        """Return the error as an event."""
        return frames(break_off(body, report_of(error), self._newest))


@router.post(
    RESPONSES_PATH,
    summary="Create a response",
    response_class=Response,
    responses=ANSWERS,
    openapi_extra=describe_body(TurnRequest),
)
async def create_response(endpoint: EndpointDep, once: OnceDep) -> Response:
    """Run one turn: wait for its end, follow its events, or return at once with `background`."""
    asked = await endpoint.read(turn_request_cooperatively)
    return await endpoint.answer(asked, once, ResponsesFormat(), endpoint.services.on_disconnect.responses)


@router.get(RESPONSES_PATH, include_in_schema=False)
async def open_socket(caller: CallerDep) -> Response:
    """Answer who may open a WebSocket here, and has asked for none."""
    told = InvalidRequest("Here a WebSocket is opened; create a response with POST.")
    return render(HTTPStatus.UPGRADE_REQUIRED, error_body(told), {"upgrade": "websocket"})


@router.post(
    "/v1/responses/input_tokens", summary="Count input tokens", openapi_extra=describe_body(InputTokensRequest)
)
async def count_input_tokens(request: Request, services: ServicesDep, caller: CallerDep) -> InputTokens:
    """Estimate how many tokens a turn would send with its history, context and tools; nothing is stored or sent."""
    asked = await read_noting(request, services, input_tokens_request_cooperatively)
    return InputTokens(input_tokens=await services.count(caller, asked, request.state.request_id))


@router.post(
    "/v1/responses/compact",
    summary="Compact a conversation",
    response_class=Response,
    responses={
        200: {
            "description": "The compacted conversation",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
    openapi_extra=describe_body(CompactRequest),
)
async def compact_response(endpoint: EndpointDep) -> Response:
    """Have the model summarise a conversation; return its user's messages and the summary, which the client carries."""
    asked, left = await endpoint.read(compact_request_cooperatively), asyncio.Event()
    find_held_body(endpoint.request).end_work()

    async def leave() -> None:
        left.set()

    work = endpoint.services.compact(endpoint.caller, asked, endpoint.request.state.request_id, left)
    made = await watch_caller(work, endpoint.request.receive, leave)
    shown = {
        "id": made.id,
        "object": "response.compaction",
        "created_at": made.created_at,
        "output": made.output,
        "usage": usage_body(made.usage),
    }
    return Response(orjson.dumps(shown), media_type="application/json")


@router.get("/v1/responses/{response_id}", summary="Retrieve a response", response_class=Response, responses=ANSWERS)
async def retrieve_response(
    response_id: str,
    endpoint: EndpointDep,
    stream: bool = False,
    starting_after: AfterParam = None,
    include: IncludeParam = NOTHING_MORE,
) -> Response:
    """Return a stored response, or replay its events and follow those that come."""
    found = await endpoint.services.responses.find(endpoint.caller, response_id)
    endpoint.name(found)
    with_results = FILE_SEARCH_RESULTS in include
    if not stream:
        shown = await endpoint.services.withheld.show(endpoint.caller, found)
        return await one_answer(shown.body, ResponsesFormat(), with_results=with_results)
    after = -1 if starting_after is None else starting_after
    return await endpoint.replay(found, after, ResponsesFormat(after), with_results=with_results)


@router.post(
    "/v1/responses/{response_id}/cancel", summary="Cancel a response", response_class=Response, responses=ANSWERS
)
async def cancel_response(response_id: str, endpoint: EndpointDep) -> Response:
    """Stop a running turn and keep what was said; a turn that has ended is returned as it is."""
    unstored = await endpoint.services.unstored.cancel(endpoint.caller, response_id)
    if unstored is not None:
        return await one_answer(unstored, ResponsesFormat(), with_results=False)
    ended = await endpoint.services.responses.cancel(endpoint.caller, response_id)
    endpoint.name(ended)
    shown = await endpoint.services.withheld.show(endpoint.caller, ended)
    return await one_answer(shown.body, ResponsesFormat(), with_results=False)


@router.delete("/v1/responses/{response_id}", summary="Delete a response")
async def delete_response(response_id: str, services: ServicesDep, caller: CallerDep) -> Deleted:
    """Delete a response, cancelling it first where it runs; its conversation keeps log and items."""
    await services.responses.delete(caller, response_id)
    return Deleted(id=response_id, object="response")


@router.get("/v1/responses/{response_id}/input_items", summary="List input items")
async def list_input_items(
    response_id: str, services: ServicesDep, caller: CallerDep, page: Annotated[ItemPageQuery, Query()]
) -> ItemList:
    """Return a page of what went in, the newest first unless asked otherwise."""
    found = await services.responses.input_items(
        caller, response_id, after=page.after, limit=page.limit, descending=page.descending
    )
    shown = await services.withheld.show_input(caller, found.response, found.items)
    return item_list(shown, page.include, has_more=found.has_more)
