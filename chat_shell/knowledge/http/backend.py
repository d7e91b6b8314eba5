"""The port `Knowledge` over the backend's internal HTTP API."""

from collections.abc import Mapping
from typing import TypeVar, cast

import aiohttp
from pydantic import BaseModel, ValidationError, model_validator

from chat_shell.knowledge.ports import KnowledgeAnswer, TurnCredentials
from shared.errors import BallastError, InternalError, NotFound, PermissionDenied, Unauthenticated, Unavailable
from shared.ids import request_id_headers
from shared.models.execution import AccessMode
from shared.models.knowledge_api import (
    KNOWLEDGE_PATH,
    DocumentsAnswer,
    DocumentsByTicket,
    KnowledgeDocument,
    KnowledgePage,
    ReadByTicket,
    SearchAnswer,
    SearchByTicket,
    TicketRequest,
    body_of,
)
from shared.models.values import JsonObject

TIMEOUT_SECONDS = 20.0

_Answer = TypeVar("_Answer", bound=BaseModel)

_REFUSALS: Mapping[int, type[BallastError]] = {
    400: InternalError,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    422: InternalError,
}


class _SearchAnswer(SearchAnswer):
    """The backend's answer to a search.

    Chunks are read in full mode only; every other or unreadable mode counts as restricted.
    """

    @model_validator(mode="before")
    @classmethod
    def _restrict_unless_full(cls, answer: object) -> object:
        if isinstance(answer, dict) and cast(JsonObject, answer).get("access_mode") == AccessMode.FULL.value:
            return cast(JsonObject, answer)
        return {"access_mode": AccessMode.RESTRICTED}


class BackendKnowledge:
    """The port `Knowledge` over HTTP; the caller closes the session."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        service_token: str,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ):
        self._session = session
        self._url = base_url.rstrip("/") + KNOWLEDGE_PATH
        self._headers = {"Authorization": f"Bearer {service_token}", "Content-Type": "application/json"}
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)

    async def search(
        self,
        credentials: TurnCredentials,
        query: str,
        base_ids: tuple[str, ...],
        *,
        limit: int,
        whole_below_tokens: int,
    ) -> KnowledgeAnswer:
        """Search; see the port."""
        asked = SearchByTicket(
            ticket=credentials.ticket,
            query=query,
            knowledge_base_ids=list(base_ids),
            limit=limit,
            whole_below_tokens=whole_below_tokens,
        )
        answer = await self._post("/search", credentials, asked, _SearchAnswer)
        return KnowledgeAnswer(access_mode=answer.access_mode, chunks=answer.data)

    async def list_documents(
        self, credentials: TurnCredentials, base_ids: tuple[str, ...]
    ) -> tuple[KnowledgeDocument, ...]:
        """List the documents; see the port."""
        asked = DocumentsByTicket(ticket=credentials.ticket, knowledge_base_ids=list(base_ids))
        return (await self._post("/documents", credentials, asked, DocumentsAnswer)).data

    async def read_document(
        self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int
    ) -> KnowledgePage:
        """Read a page; see the port."""
        asked = ReadByTicket(ticket=credentials.ticket, file_id=file_id, offset=offset, limit=limit)
        return await self._post("/read", credentials, asked, KnowledgePage)

    async def read_file(self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int) -> KnowledgePage:
        """Read a page of an attached file; see the port."""
        asked = ReadByTicket(ticket=credentials.ticket, file_id=file_id, offset=offset, limit=limit)
        return await self._post("/read_file", credentials, asked, KnowledgePage)

    async def _post(
        self, path: str, credentials: TurnCredentials, asked: TicketRequest, shape: type[_Answer]
    ) -> _Answer:
        status, text = await self._send(path, credentials.request_id, body_of(asked))
        if status != 200:
            raise _REFUSALS.get(status, Unavailable)(f"the knowledge service answered {status}")
        try:
            return shape.model_validate_json(text, extra="ignore")
        except ValidationError:
            # The validation error would quote the answer, and with it text of documents, so it is not chained.
            raise Unavailable("the knowledge service gave an answer that cannot be read") from None

    async def _send(self, path: str, request_id: str, body: bytes) -> tuple[int, bytes]:
        headers = self._headers | request_id_headers(request_id)
        try:
            async with self._session.post(
                self._url + path, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable("the knowledge service cannot be reached") from error
