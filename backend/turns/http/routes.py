"""The routes of responses, as OpenAI's API defines them."""

from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Request, Response

from backend.conversations.domain.item_bodies import FILE_SEARCH_RESULTS, Include
from backend.conversations.domain.item_pages import ItemList, ItemPageQuery, item_list
from backend.conversations.domain.responses import StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.http.bodies import held_body
from backend.foundation.http.errors import mark_turn_begun
from backend.foundation.http.idempotency import mark_replayed
from backend.foundation.http.inline_schema import described_body
from backend.foundation.http.json_body import check_media_type, new_router, read_json
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted
from backend.foundation.services.idempotency import KEY_HEADER
from backend.foundation.services.steps import in_steps
from backend.identity.domain import Caller
from backend.identity.http.caller import CallerDep, OnceDep
from backend.turns.domain.response_object import ResponseBody, report_in, shown_body
from backend.turns.domain.turn_request import TurnRequest, turn_request_in_steps
from backend.turns.http.event_stream import EventStream
from backend.turns.services.turn_registry import RunningTurn
from backend.turns.services.use_cases import TurnServices
from shared.errors import InvalidRequest
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
STREAM_FIELDS = ("stream", "stream_options")
"""How an answer is sent, which may differ when a request is sent again under its key."""
IncludeParam = Annotated[list[Include], Query(alias="include[]")]
AfterParam = Annotated[int | None, Query(ge=0, le=2**53, description="Events after this number; all without it.")]


@router.post(
    "/v1/responses",
    summary="Create a response",
    response_class=Response,
    responses=ANSWERS,
    openapi_extra=described_body(TurnRequest),
)
async def create_response(request: Request, services: ServicesDep, caller: CallerDep, once: OnceDep) -> Response:
    """Run one turn: wait for its end, follow its events, or return at once with `background`."""
    check_media_type(request)
    asked = await in_steps(turn_request_in_steps(await read_json(request)))
    if once.has_key and not asked.is_stored:
        raise InvalidRequest("A turn with store: false leaves nothing behind, its key neither.", param=KEY_HEADER)

    async def create(claim: KeyClaim | None) -> RunningTurn:
        return await services.start(caller, asked, request.state.request_id, claim)

    async def again(response_id: str) -> StoredResponse:
        return await services.responses.find(caller, response_id)

    begun = await once(create, again, not_compared=STREAM_FIELDS)
    mark_turn_begun(request)
    found = begun if isinstance(begun, StoredResponse) else begun.response
    request.state.conversation_id, request.state.turn_id = found.conversation_id, found.id
    if isinstance(begun, StoredResponse):
        return await _answered_again(services, caller, asked, begun)
    begun.at_end(held_body(request).keep())
    return await _answered(services, asked, begun)


async def _answered(services: ServicesDep, asked: TurnRequest, running: RunningTurn) -> Response:
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
    with_results = FILE_SEARCH_RESULTS in include
    if not stream:
        return _json((await services.withheld.shown(caller, found)).body, with_results=with_results)
    after = -1 if starting_after is None else starting_after
    return await _replayed(services, caller, found, after, with_results=with_results)


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


async def _answered_again(services: ServicesDep, caller: Caller, asked: TurnRequest, found: StoredResponse) -> Response:
    """Answer a request whose turn has begun before, as that request was or will be answered."""
    if asked.stream:
        answer: Response = await _replayed(services, caller, found, -1, with_results=asked.wants_results)
    elif asked.is_background:
        answer = _json((await services.withheld.shown(caller, found)).body, with_results=False)
    else:
        shown = await services.withheld.shown(caller, await services.responses.ended(found))
        answer = _answer_of(shown.body, with_results=asked.wants_results)
    mark_replayed(answer)
    return answer


async def _replayed(
    services: ServicesDep, caller: Caller, found: StoredResponse, after: int, *, with_results: bool
) -> EventStream:
    if await services.withheld.shown(caller, found) is not found:
        as_shown = partial(services.withheld.shown, caller)
        return EventStream(services.follow.first_and_last(found, after, as_shown))
    return EventStream(services.follow(found, after, with_results=with_results))


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
    return _answer_of(ended.body, with_results=running.with_results)


def _answer_of(body: ResponseBody, *, with_results: bool) -> Response:
    report = report_in(body)
    if report is not None:
        raise error_of(report)
    return _json(body, with_results=with_results)


def _json(body: ResponseBody, *, with_results: bool) -> Response:
    content = orjson.dumps(shown_body(body, with_results=with_results))
    return Response(content, media_type="application/json")
