"""The routes of responses, as OpenAI's API defines them."""

from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Request, Response

from backend.conversations.domain.item_bodies import FILE_SEARCH_RESULTS, Include
from backend.conversations.domain.item_pages import ItemList, ItemPageQuery, item_list
from backend.foundation.http.bodies import held_body
from backend.foundation.http.errors import mark_turn_begun
from backend.foundation.http.inline_schema import described_body
from backend.foundation.http.json_body import check_media_type, in_steps, new_router, read_json
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted
from backend.identity.http.caller import CallerDep
from backend.turns.domain.response_object import ResponseBody, report_in, shown_body
from backend.turns.domain.turn_request import TurnRequest, turn_request_in_steps
from backend.turns.http.event_stream import EventStream
from backend.turns.services.turn_registry import RunningTurn
from backend.turns.services.use_cases import TurnServices
from shared.models.error_reports import error_of

ServicesDep = Annotated[TurnServices, Depends(service_of(TurnServices))]
router = new_router("Responses")
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response, or its events where `stream` is true.",
        "content": {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {}},
    }
}
NOTHING_MORE: list[Include] = []
IncludeParam = Annotated[list[Include], Query(alias="include[]")]
AfterParam = Annotated[int | None, Query(ge=0, le=2**53, description="Events after this number; all without it.")]


@router.post(
    "/v1/responses",
    summary="Create a response",
    response_class=Response,
    responses=ANSWERS,
    openapi_extra=described_body(TurnRequest),
)
async def create_response(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    """Run one turn: wait for its end, follow its events, or return at once with `background`."""
    check_media_type(request)
    asked = await in_steps(turn_request_in_steps(await read_json(request)))
    running = await services.start(caller, asked, request.state.request_id)
    mark_turn_begun(request)
    running.at_end(held_body(request).keep())
    request.state.conversation_id, request.state.turn_id = running.response.conversation_id, running.response.id
    if asked.stream:
        return _event_stream(services, running)
    if asked.is_background:
        return _json(running.response.body, with_results=False)
    return await _ended(services, running)


@router.get("/v1/responses/{response_id}", summary="Retrieve a response", response_class=Response, responses=ANSWERS)
async def retrieve_response(
    response_id: str,
    services: ServicesDep,
    caller: CallerDep,
    stream: bool = False,
    starting_after: AfterParam = None,
    include: IncludeParam = NOTHING_MORE,
) -> Response:
    """Return a stored response, or replay its events and follow those that come."""
    found = await services.responses.find(caller, response_id)
    shown = await services.withheld.shown(caller, found)
    with_results = FILE_SEARCH_RESULTS in include
    if not stream:
        return _json(shown.body, with_results=with_results)
    after = -1 if starting_after is None else starting_after
    if shown is not found:
        as_shown = partial(services.withheld.shown, caller)
        return EventStream(services.follow.first_and_last(found, after, as_shown))
    return EventStream(services.follow(found, after, with_results=with_results))


@router.post(
    "/v1/responses/{response_id}/cancel", summary="Cancel a response", response_class=Response, responses=ANSWERS
)
async def cancel_response(response_id: str, services: ServicesDep, caller: CallerDep) -> Response:
    """Stop a running turn and keep what was said; a turn that has ended is returned as it is."""
    ended = await services.responses.cancel(caller, response_id)
    return _json((await services.withheld.shown(caller, ended)).body, with_results=False)


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
    return item_list(found.items, page.include, has_more=found.has_more)


def _event_stream(services: ServicesDep, running: RunningTurn) -> Response:
    batches = services.follow(running.response, -1, with_results=running.with_results)

    async def release() -> None:
        await services.registry.release(running)

    return EventStream(batches, release)


async def _ended(services: ServicesDep, running: RunningTurn) -> Response:
    """Wait for the end; a turn that failed is answered as the error that it failed with."""
    try:
        ended = await running.ended()
    finally:
        await services.registry.release(running)
    report = report_in(ended.body)
    if report is not None:
        raise error_of(report)
    return _json(ended.body, with_results=running.with_results)


def _json(body: ResponseBody, *, with_results: bool) -> Response:
    content = orjson.dumps(shown_body(body, with_results=with_results))
    return Response(content, media_type="application/json")
