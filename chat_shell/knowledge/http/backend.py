"""Knowledge through the backend's internal HTTP API."""

from collections.abc import Mapping
from typing import Any, TypeVar

import aiohttp
import orjson
from pydantic import BaseModel, ValidationError

from chat_shell.knowledge.http.answers import DocumentsAnswer, PageAnswer, SearchAnswer
from chat_shell.knowledge.ports import Claim, KnowledgeAnswer, KnowledgeDocument, KnowledgePage
from shared.errors import BallastError, InternalError, NotFound, PermissionDenied, Unauthenticated, Unavailable
from shared.ids import request_id_headers

PATH = "/internal/v1/knowledge"
TIMEOUT_SECONDS = 20.0

_Answer = TypeVar("_Answer", bound=BaseModel)

_REFUSALS: Mapping[int, type[BallastError]] = {
    400: InternalError,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    422: InternalError,
}


class BackendKnowledge:
    """Asks the backend; the session is the caller's to close."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        service_token: str,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ):
        self._session = session
        self._url = base_url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {service_token}", "Content-Type": "application/json"}
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)

    async def search(
        self, claim: Claim, query: str, base_ids: tuple[str, ...], *, limit: int, whole_below_tokens: int
    ) -> KnowledgeAnswer:
        """Search; see the port."""
        body = {
            "query": query,
            "knowledge_base_ids": base_ids,
            "limit": limit,
            "whole_below_tokens": whole_below_tokens,
        }
        return (await self._post("/search", claim, body, SearchAnswer)).value()

    async def list_documents(self, claim: Claim, base_ids: tuple[str, ...]) -> tuple[KnowledgeDocument, ...]:
        """List the documents; see the port."""
        body = {"knowledge_base_ids": base_ids}
        return (await self._post("/documents", claim, body, DocumentsAnswer)).value()

    async def read_document(self, claim: Claim, file_id: str, *, offset: int, limit: int) -> KnowledgePage:
        """Read a page; see the port."""
        body = {"file_id": file_id, "offset": offset, "limit": limit}
        return (await self._post("/read", claim, body, PageAnswer)).value()

    async def _post(self, path: str, claim: Claim, body: Mapping[str, Any], shape: type[_Answer]) -> _Answer:
        status, text = await self._send(path, claim.request_id, orjson.dumps({"ticket": claim.ticket, **body}))
        if status != 200:
            raise _REFUSALS.get(status, Unavailable)(f"the knowledge service answered {status}")
        try:
            return shape.model_validate_json(text)
        except ValidationError:
            # The cause would quote the answer, and with it text of documents.
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
