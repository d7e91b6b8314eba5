"""Asking for a turn over HTTP and answering it: the same for every API in whose words an answer may be given."""

from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Request, Response

from backend.conversations.domain.passed_over import PassedOver
from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.domain.json_objects import JsonText, Steps
from backend.foundation.http.bodies import find_held_body
from backend.foundation.http.errors import mark_turn_begun
from backend.foundation.http.idempotency import Once, mark_replayed
from backend.foundation.http.json_body import JSON_TEXT, Handler, JsonRoute, check_media_type, read_json
from backend.foundation.http.middleware import ANSWER_HEADERS, IGNORED, STEER_HEADER
from backend.foundation.http.services import service_in, service_of
from backend.foundation.services.idempotency import KEY_HEADER
from backend.foundation.services.steps import run_cooperatively
from backend.identity.domain import Caller
from backend.identity.http.caller import CallerDep, once_of_caller
from backend.openai_api.domain.client_left import OnDisconnect
from backend.openai_api.domain.response_object import ResponseBody, report_in
from backend.openai_api.domain.turn_request import TurnRequest
from backend.streams.services.reader_rights import ReaderRights
from backend.turns.domain.queued_request import AcknowledgedTurn
from backend.turns.http.event_stream import ApiFormat, EventBatches, EventStream, Release, release_nothing, watch_caller
from backend.turns.http.refused_early import TURN_PATHS
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.use_cases import TurnServices
from shared.errors import InvalidRequest
from shared.models.error_reports import error_of

ServicesDep = Annotated[TurnServices, Depends(service_of(TurnServices))]
READING = "reading"
"""Where the state of a request may hold how its body is read in place of what the route says."""

STREAM_FIELDS = ("stream", "stream_options")
"""How an answer is sent, which may differ when a request is sent again under its key."""


Asked = TypeVar("Asked")
Reading = Callable[[JsonText, PassedOver | None], Steps[Asked]]


async def read_noting(request: Request, services: TurnServices, reading: Reading[Asked]) -> Asked:
    """Read a body of JSON, and note what is passed over in it for the answer's header."""
    check_media_type(request)
    passed_over = services.collect_passed_over()
    request.scope["state"][IGNORED] = passed_over
    return await run_cooperatively(reading(await read_json(request), passed_over))


@dataclass(frozen=True)
class TurnEndpoint:
    """A request for a turn, who makes it, and what serves it."""

    request: Request
    services: TurnServices
    caller: Caller

    async def answer(
        self, asked: TurnRequest, once: Once, api_format: ApiFormat, on_disconnect: OnDisconnect
    ) -> Response:
        """Run one turn: wait for its end, follow its events, or return at once with `background`.

        `on_disconnect` is what a closed stream does to its turn where the request does not say.

        Raises:
            InvalidRequest: a request that leaves nothing behind has an Idempotency-Key.
            BallastError: whatever the turn fails with, before it begins or, where it is not streamed, in its course.
        """
        begun = await self._begin(asked, once)
        body = find_held_body(self.request)
        body.end_work()
        self.request.scope["state"].pop(JSON_TEXT, None)  # the turn keeps what it has become
        found = begun if isinstance(begun, StoredResponse) else begun.response
        mark_turn_begun(self.request)
        self.name(found)
        ends_with_client = asked.ends_with_client(on_disconnect)
        if isinstance(begun, AcknowledgedTurn):
            release = partial(self._release_waiting, begun.response) if ends_with_client else release_nothing
            return await self._answer_queued(asked, begun, api_format, release)
        if isinstance(begun, StoredResponse):
            answer = await self._answer_later(asked, begun, api_format)
            mark_replayed(answer)
            return answer
        begun.at_end(body.keep())
        if asked.stream:
            return self._answer_streaming(begun, api_format, ends_with_client=ends_with_client)
        if asked.is_background:
            return await one_answer(found.body, api_format, with_results=False)
        if not ends_with_client:
            return await self._answer_at_end(begun, api_format)
        stop = partial(self.services.responses.stop_left, begun.response)
        return await watch_caller(self._answer_at_end(begun, api_format), self.request.receive, stop)

    async def _answer_queued(
        self, asked: TurnRequest, begun: AcknowledgedTurn, api_format: ApiFormat, release: Release
    ) -> Response:
        """Answer with the waiting turn, or with the one that its message enters."""
        if begun.steered is None:
            return await self._answer_later(asked, begun.response, api_format, release)
        self.name(begun.steered)
        found = begun.steered if asked.is_background else begun.response
        answer = await self._answer_later(asked, found, api_format, release)
        answer.headers[STEER_HEADER] = begun.response.id
        return answer

    async def read(self, reading: Reading[Asked]) -> Asked:
        """Read the request's body, and note what is passed over in it for the answer's header."""
        return await read_noting(self.request, self.services, self.request.scope["state"].get(READING, reading))

    def name(self, response: StoredResponse) -> None:
        """Note which response the answer is about, for its header and for the access log."""
        state = self.request.state
        state.conversation_id, state.turn_id = response.conversation_id, response.id

    async def replay(
        self,
        found: StoredResponse,
        after: int,
        api_format: ApiFormat,
        *,
        with_results: bool,
        release: Release = release_nothing,
    ) -> EventStream:
        """Return the events of a stored response with a number above `after`, those to come included."""
        if found.status is ResponseStatus.QUEUED:
            batches = self._once_begun(found, after, with_results=with_results)
        else:
            batches = await self._batches(found, after, self._rights(found), with_results=with_results)
        return self._stream(batches, api_format, found, release)

    def _rights(self, found: StoredResponse, *, reads_text: bool = True) -> ReaderRights:
        return ReaderRights(self.services.rights, self.caller, found, reads_text=reads_text)

    async def _batches(
        self, found: StoredResponse, after: int, rights: ReaderRights, *, with_results: bool
    ) -> EventBatches:
        services = self.services
        if await services.withheld.show(self.caller, found) is not found:
            as_shown = partial(services.withheld.show, self.caller)
            rights = rights.after_waiting(found, reads_text=False)
            return services.follow.first_and_last(found, after, as_shown, rights)
        rights = rights.after_waiting(found, reads_text=True)
        return services.follow(found, after, with_results=with_results, rights=rights)

    async def _once_begun(self, found: StoredResponse, after: int, *, with_results: bool) -> EventBatches:
        """Yield the events of a turn that waits; what of them this caller may see is known once it has begun."""
        rights = self._rights(found)
        begun = await self.services.responses.wait_until_begun_or_deleted(found)
        async with aclosing(await self._batches(begun, after, rights, with_results=with_results)) as batches:
            async for batch in batches:
                yield batch

    async def _begin(self, asked: TurnRequest, once: Once) -> RunningTurn | AcknowledgedTurn | StoredResponse:
        if once.has_key and not asked.is_stored:
            raise InvalidRequest(
                "A turn with store: false leaves nothing behind, its key neither; leave this header out.",
                param=KEY_HEADER,
            )

        async def create(claim: KeyClaim | None) -> RunningTurn | AcknowledgedTurn:
            return await self.services.start(self.caller, asked, self.request.state.request_id, claim)

        async def again(response_id: str) -> StoredResponse:
            return await self.services.responses.find(self.caller, response_id)

        return await once(create, again, not_compared=STREAM_FIELDS)

    async def _answer_later(
        self, asked: TurnRequest, found: StoredResponse, api_format: ApiFormat, release: Release = release_nothing
    ) -> Response:
        """Answer a request whose turn waits, or has begun before, as one whose turn begins at once is answered."""
        services = self.services
        if asked.stream:
            return await self.replay(found, -1, api_format, with_results=asked.wants_results, release=release)
        if asked.is_background:
            shown = await services.withheld.show(self.caller, found)
            return await one_answer(shown.body, api_format, with_results=False)
        rights = self._rights(found, reads_text=False)
        ended = await services.responses.wait_until_ended(found)
        await rights.check()
        shown = await services.withheld.show(self.caller, ended)
        return await _answer_of(shown.body, api_format, with_results=asked.wants_results)

    def _answer_streaming(self, running: RunningTurn, api_format: ApiFormat, *, ends_with_client: bool) -> Response:
        rights = self._rights(running.response)
        batches = self.services.follow(running.response, -1, with_results=running.with_results, rights=rights)
        release = partial(self._release, running, ends_with_client)
        return self._stream(batches, api_format, running.response, release)

    def _stream(
        self, batches: EventBatches, api_format: ApiFormat, response: StoredResponse, release: Release
    ) -> EventStream:
        stream = EventStream(batches, api_format, response.body, release)
        if response.is_restricted:
            stream.pace = self.services.pace
        return stream

    async def _release(self, running: RunningTurn, ends_with_client: bool, has_left: bool) -> None:
        if has_left and ends_with_client and not running.has_ended:
            await self.services.responses.stop_left(running.response)
        await self.services.registry.release(running)

    async def _release_waiting(self, waiting: StoredResponse, has_left: bool) -> None:
        if has_left:
            await self.services.responses.stop_left(waiting)

    async def _answer_at_end(self, running: RunningTurn, api_format: ApiFormat) -> Response:
        """Wait for the end; a turn that failed is answered as the error that it failed with."""
        rights = self._rights(running.response, reads_text=False)
        try:
            ended = await running.wait_until_ended()
        finally:
            await self.services.registry.release(running)
        # rights may have changed while the turn ran
        await rights.check()
        shown = await self.services.withheld.show(self.caller, ended)
        return await _answer_of(shown.body, api_format, with_results=running.with_results)


async def one_answer(body: ResponseBody, api_format: ApiFormat, *, with_results: bool) -> Response:
    """Return a response as one JSON object."""
    content = orjson.dumps(await api_format.whole(body, with_results=with_results))
    return Response(content, media_type="application/json")


async def _endpoint(request: Request, caller: CallerDep) -> TurnEndpoint:
    services = service_in(request, TurnServices)
    request.scope["state"][ANSWER_HEADERS] = partial(services.rates.headers, caller)
    return TurnEndpoint(request, services, caller)


EndpointDep = Annotated[TurnEndpoint, Depends(_endpoint)]
"""What a route needs that answers a turn."""


class TurnRoute(JsonRoute):
    """A route that gives what each turn needs to those that begin one, in place of FastAPI."""

    def get_route_handler(self) -> Handler:
        """Call the endpoint itself; the names of its parameters are those of `create_response`."""
        if self.methods != {"POST"} or self.path not in TURN_PATHS:
            return super().get_route_handler()
        begin: Callable[..., Coroutine[None, None, Response]] = self.endpoint

        async def answer(request: Request) -> Response:
            caller, once = await once_of_caller(request)
            return await begin(endpoint=await _endpoint(request, caller), once=once)

        return answer


async def _answer_of(body: ResponseBody, api_format: ApiFormat, *, with_results: bool) -> Response:
    report = report_in(body)
    if report is not None:
        raise error_of(report)
    return await one_answer(body, api_format, with_results=with_results)


def describe_answers(whole: str, streamed: str) -> dict[int | str, dict[str, Any]]:
    """Describe an answer for the OpenAPI document: one object, or events where `stream` is true."""
    content = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {}}
    return {200: {"description": f"{whole}, or {streamed} where `stream` is true.", "content": content}}
