"""Lookups in all bases of a caller: passages and documents where they may read them, else a safe summary."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding, Document
from backend.knowledge.services.document_text import TextPage
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import DocumentPage, KnowledgeDocuments
from backend.knowledge.services.search_knowledge import SearchKnowledge
from backend.mcp.domain.resource_addresses import ListPlace
from backend.mcp.services.restricted_lookup import RestrictedLookup
from backend.search.domain.chunks import ChunkHit
from shared.errors import InvalidRequest, NotFound
from shared.models.execution import AccessMode
from shared.models.safe_summary import ReleasedSummary

RESOURCES_A_PAGE = 100


class BasesSearch(NamedTuple):
    """What is searched: the query, the bases or None for all of the caller's, and how many passages they want."""

    query: str
    base_ids: Sequence[str] | None
    max_results: int


class BasesFound(NamedTuple):
    """The passages, best first, of the bases that were read, and the summary of those that are restricted.

    `summary` is None where nothing may be said of the restricted bases, whatever the cause. `passed_over` are
    restricted bases that were not searched.
    """

    hits: tuple[ChunkHit, ...]
    read: tuple[Binding, ...]
    restricted: tuple[Binding, ...]
    summary: ReleasedSummary | None
    passed_over: tuple[Binding, ...] = ()


class ResourcePage(NamedTuple):
    """Some documents by base and name, and the place where the next page begins, or None at the end."""

    documents: tuple[Document, ...]
    next_place: ListPlace | None


class Lookups:
    """What programs ask of the knowledge of a caller, by the caller's present roles."""

    def __init__(
        self,
        bases: KnowledgeCatalogue,
        documents: KnowledgeDocuments,
        passages: SearchKnowledge,
        restricted: RestrictedLookup,
        resources_a_page: int = RESOURCES_A_PAGE,
    ) -> None:
        self._bases = bases
        self._documents = documents
        self._passages = passages
        self._restricted = restricted
        self._resources_a_page = resources_a_page

    async def search(self, caller: Caller, search: BasesSearch, request_id: str) -> BasesFound:
        """Search; where no base is named and some that they may read answer, the restricted ones are passed over.

        Their few searches a day are for questions that need them.

        Raises:
            NotFound: the caller is not a member of a named base.
            Unavailable: what `RestrictedLookup` needs is away, where a base is restricted. Retryable.
        """
        bindings = await self._bases.named(caller, search.base_ids)
        read = tuple(binding for binding in bindings if binding.role.access_mode is AccessMode.FULL)
        restricted = tuple(binding for binding in bindings if binding.role.access_mode is not AccessMode.FULL)
        hits = await self._passages.search_in(read, search.query, search.max_results) if read else ()
        if search.base_ids is None and hits:
            return BasesFound(hits, read, (), None, passed_over=restricted)
        summary = await self._restricted(caller, restricted, search.query, request_id) if restricted else None
        return BasesFound(hits, read, restricted, summary)

    async def bases(self, caller: Caller, after: str | None, limit: int) -> tuple[Sequence[Binding], bool]:
        """Return bases of the caller behind one, the oldest first, and whether there are more.

        Raises:
            NotFound: `after` names none of them.
        """
        return await self._bases.page(caller, after=after, limit=limit, descending=False)

    async def documents(self, caller: Caller, base_id: str, after: str | None, limit: int) -> DocumentPage:
        """Return documents of a base by name, behind one.

        Raises:
            NotFound: the caller is not a member, or `after` names none of them.
            PermissionDenied: the caller is restricted.
        """
        return await self._documents.page(caller, base_id, after=after, limit=limit, descending=False)

    async def text(self, caller: Caller, base_id: str, document: str, *, offset: int, limit: int) -> TextPage:
        """Return a page of a document's text; `document` is its name or id.

        Raises:
            NotFound: the caller is not a member, or there is no such document.
            PermissionDenied: the caller is restricted.
        """
        return await self._documents.text(caller, base_id, document, offset=offset, limit=limit)

    async def resources(self, caller: Caller, after: ListPlace | None) -> ResourcePage:
        """Return a page of the documents that the caller may read; those of restricted bases are not listed.

        Raises:
            InvalidRequest: the place is no longer in the list; `param` is `cursor`.
        """
        bindings = await self._bases.named(caller, None)
        readable = [binding.base.id for binding in bindings if binding.role.access_mode is AccessMode.FULL]
        if after is not None and after.knowledge_base_id not in readable:
            raise _refuse_cursor()
        found, wanted = list[Document](), self._resources_a_page + 1
        for base_id in readable[readable.index(after.knowledge_base_id) if after is not None else 0 :]:
            behind = after.document_id if after is not None and after.knowledge_base_id == base_id else None
            try:
                found += (await self.documents(caller, base_id, behind, wanted - len(found))).documents
            except NotFound:
                raise _refuse_cursor() from None
            if len(found) == wanted:
                last = found[-2]
                return ResourcePage(tuple(found[:-1]), ListPlace(last.knowledge_base_id, last.id))
        return ResourcePage(tuple(found), None)


def _refuse_cursor() -> InvalidRequest:
    return InvalidRequest("cursor: what it names is not in the list any more; begin without a cursor", param="cursor")
