"""Listing the documents of all bases that a caller may read, in pages."""

from typing import NamedTuple

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.services.use_cases import KnowledgeServices
from backend.mcp.domain.resource_addresses import ListPlace
from shared.errors import InvalidRequest, NotFound
from shared.models.execution import AccessMode

RESOURCES_A_PAGE = 100


class ResourcePage(NamedTuple):
    """Some documents by base and name, and the place where the next page begins, or None at the end."""

    documents: tuple[Document, ...]
    next_place: ListPlace | None


class ListResources:
    """Lists documents by the caller's present roles; those of restricted bases are not listed."""

    def __init__(self, knowledge: KnowledgeServices, page_size: int = RESOURCES_A_PAGE) -> None:
        self._knowledge = knowledge
        self._page_size = page_size

    async def __call__(self, caller: Caller, after: ListPlace | None) -> ResourcePage:
        """Return the page behind a place.

        Raises:
            InvalidRequest: the place is no longer in the list; `param` is `cursor`.
        """
        bindings = await self._knowledge.bases.named(caller, None)
        readable = [binding.base.id for binding in bindings if binding.role.access_mode is AccessMode.FULL]
        if after is not None and after.knowledge_base_id not in readable:
            raise _gone()
        found: list[Document] = []
        for base_id in readable[readable.index(after.knowledge_base_id) if after is not None else 0 :]:
            behind = after.document_id if after is not None and after.knowledge_base_id == base_id else None
            found += await self._documents(caller, base_id, behind, self._page_size + 1 - len(found))
            if len(found) > self._page_size:
                last = found[self._page_size - 1]
                return ResourcePage(tuple(found[: self._page_size]), ListPlace(last.knowledge_base_id, last.id))
        return ResourcePage(tuple(found), None)

    async def _documents(self, caller: Caller, base_id: str, after: str | None, limit: int) -> tuple[Document, ...]:
        try:
            page = await self._knowledge.documents.page(caller, base_id, after=after, limit=limit, descending=False)
        except NotFound:
            raise _gone() from None
        return page.documents


def _gone() -> InvalidRequest:
    return InvalidRequest("cursor: what it names is not in the list any more; begin without a cursor", param="cursor")
