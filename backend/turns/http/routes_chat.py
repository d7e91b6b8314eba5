"""The route of Chat Completions, as OpenAI's API defines it: another way to ask for a turn and to read its answer."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from urllib.parse import quote

import orjson
from fastapi import Response

from backend.foundation.http.errors import error_body
from backend.foundation.http.inline_schema import described_body
from backend.foundation.http.json_body import new_router
from backend.identity.http.caller import OnceDep
from backend.turns.domain.chat_chunks import ChunkProjection
from backend.turns.domain.chat_completion import Addresses, Citation, completion_body, said_in
from backend.turns.domain.chat_request import ChatRequest, ChatTurn, chat_request_in_steps
from backend.turns.domain.response_object import ResponseBody
from backend.turns.http.event_stream import EventBatches
from backend.turns.http.refused_early import CHAT_PATH
from backend.turns.http.turn_answers import DoorDep, TurnDoor, described_answers
from shared.errors import BallastError
from shared.models.error_reports import error_of
from shared.models.values import JsonObject

router = new_router("Chat Completions")


class ChatWording:
    """The words of OpenAI's Chat Completions."""

    def __init__(self, door: TurnDoor, turn: ChatTurn) -> None:
        self._door = door
        self._turn = turn

    async def whole(self, body: ResponseBody, *, with_results: bool) -> JsonObject:
        """Return the `chat.completion`; it has no place for results of searches."""
        said = said_in(body["output"])
        return completion_body(body, said, await self._addresses(said.citations))

    async def frames(self, batches: EventBatches) -> AsyncGenerator[bytes, None]:
        """Yield the chunks, or those before a failure and the error."""
        projection = ChunkProjection(includes_usage=self._turn.chat.includes_usage)
        async with aclosing(batches) as events:
            async for batch in events:
                chunks = projection.feed(batch)
                if projection.ended is not None:
                    chunks += await self._last_chunks(projection)
                if chunks:
                    yield b"".join(map(_frame, chunks))
        if projection.ended is None and projection.failure is not None:
            yield _frame(self._error(error_of(projection.failure)))

    def broken(self, body: ResponseBody, error: BallastError) -> bytes:
        """Return the error in a frame of its own."""
        return _frame(self._error(error))

    async def _last_chunks(self, projection: ChunkProjection) -> list[bytes]:
        said, failure = projection.said, projection.failure
        chunks = projection.finish(said, await self._addresses(said.citations))
        if failure is None:
            return chunks
        return [*chunks, self._error(error_of(failure))]

    def _error(self, error: BallastError) -> bytes:
        self._turn.name_as_given(error)
        return orjson.dumps({"error": error_body(error)})

    async def _addresses(self, citations: Iterable[Citation]) -> Addresses:
        """Return where this server gives out the cited documents, as the client has addressed it."""
        source_ids = [citation.file_id for citation in citations]
        documents = await self._door.services.cited(self._door.caller, source_ids)
        root = f"{self._door.request.base_url}v1/knowledge_bases"
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
    responses=described_answers("The chat completion", "its chunks"),
    openapi_extra=described_body(ChatRequest),
)
async def create_chat_completion(door: DoorDep, once: OnceDep) -> Response:
    """Run one turn over the messages, and answer with what it said; `X-Ballast-Response-Id` names the response."""
    turn = await door.read(chat_request_in_steps)
    try:
        return await door.answer(turn.request, once, ChatWording(door, turn), door.services.on_disconnect.chat)
    except BallastError as error:
        turn.name_as_given(error)
        raise
