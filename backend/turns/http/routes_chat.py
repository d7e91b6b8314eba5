"""The route of Chat Completions, as OpenAI's API defines it: another way to ask for a turn and to read its answer."""

from collections.abc import Sequence
from urllib.parse import quote

import orjson
from fastapi import Response

from backend.foundation.http.errors import error_body
from backend.foundation.http.inline_schema import describe_body
from backend.foundation.http.json_body import new_router
from backend.identity.http.caller import OnceDep
from backend.openai_api.domain.chat_chunks import ChunkProjection
from backend.openai_api.domain.chat_completion import Addresses, Choice, choices_in, completion_body, failure_in
from backend.openai_api.domain.chat_request import ChatRequest, ChatTurn, chat_request_cooperatively
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import ResponseBody
from backend.turns.http.refused_early import CHAT_PATH
from backend.turns.http.turn_answers import EndpointDep, TurnEndpoint, TurnRoute, describe_answers
from shared.errors import BallastError
from shared.models.error_reports import error_of
from shared.models.values import JsonObject

router = new_router("Chat Completions", TurnRoute)


class ChatFormat:
    """The words of OpenAI's Chat Completions."""

    def __init__(self, endpoint: TurnEndpoint, turn: ChatTurn) -> None:
        self._endpoint = endpoint
        self._turn = turn
        self._projection = ChunkProjection(includes_usage=turn.chat.includes_usage)

    async def whole(self, body: ResponseBody, *, with_results: bool) -> JsonObject:
        """Return the `chat.completion`; it has no place for results of searches.

        Raises:
            BallastError: one of several answers failed.
        """
        choices = choices_in(body)
        failure = failure_in(choices)
        if failure is not None:
            raise error_of(failure)
        return completion_body(body, choices, await self._addresses(choices))

    def frames(self, events: Sequence[LoggedEvent]) -> bytes:
        """Return the chunks of what is said."""
        return b"".join(map(_frame, self._projection.feed(events)))

    async def last_frames(self) -> bytes:
        """Return the chunks that end the choices, and the error of a turn that failed."""
        projection = self._projection
        chunks = projection.finish(await self._addresses(projection.choices)) if projection.choices else []
        if projection.failure is not None:
            chunks.append(self._error(error_of(projection.failure)))
        return b"".join(map(_frame, chunks))

    def encode_error(self, body: ResponseBody, error: BallastError) -> bytes:
        """Return the error in a frame of its own."""
        return _frame(self._error(error))

    def _error(self, error: BallastError) -> bytes:
        self._turn.name_as_given(error)
        return orjson.dumps({"error": error_body(error)})

    async def _addresses(self, choices: Sequence[Choice]) -> Addresses:
        """Return where this server gives out the cited documents, as the client has addressed it."""
        source_ids = [citation.file_id for choice in choices for citation in choice.said.citations]
        documents = await self._endpoint.services.cited(self._endpoint.caller, source_ids)
        root = f"{self._endpoint.request.base_url}v1/knowledge_bases"
        return {
            source_id: f"{root}/{document.knowledge_base_id}/documents/{quote(document.name, safe='')}"
            for source_id, document in documents.items()
        }


def _frame(chunk: bytes) -> bytes:
    return b"data: %b\n\n" % chunk


@router.post(
    CHAT_PATH,
    summary="Create a chat completion",
    response_class=Response,
    responses=describe_answers("The chat completion", "its chunks"),
    openapi_extra=describe_body(ChatRequest),
)
async def create_chat_completion(endpoint: EndpointDep, once: OnceDep) -> Response:
    """Run one turn over the messages, and answer with what it said; `X-Ballast-Response-Id` names the response."""
    turn = await endpoint.read(chat_request_cooperatively)
    try:
        return await endpoint.answer(
            turn.request, once, ChatFormat(endpoint, turn), endpoint.services.on_disconnect.chat
        )
    except BallastError as error:
        turn.name_as_given(error)
        raise
