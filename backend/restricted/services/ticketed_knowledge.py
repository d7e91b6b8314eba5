"""Retrieval for chat_shell: the ticket of a turn names bases, and the user's present memberships decide.

A restricted search returns no text here; `SealedSearches` return it to the sealed room.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backend.knowledge.domain.access import require_read, strictest_mode
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.domain.tickets import Ticket
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.document_text import TextPage, text_page
from backend.restricted.domain.restricted import SearchRequest
from backend.restricted.services.ticket_access import TicketAccess
from backend.search.domain.chunks import ChunkHit
from backend.search.ports.index import Retrieval
from shared.errors import NotFound
from shared.models.execution import AccessMode


class SearchResult(NamedTuple):
    """The chunks that a search found; with `whole` they are all chunks of the bases, in document order."""

    access_mode: AccessMode
    whole: bool
    hits: tuple[ChunkHit, ...]


class TicketedKnowledge:
    """Retrieval by ticket.

    Every method raises Unauthenticated for a forged or expired ticket, which is audited, and PermissionDenied for a
    base that is not in it or of which the user is no longer a member.
    """

    def __init__(self, store: KnowledgeStore, retrieval: Retrieval, access: TicketAccess) -> None:
        self._store = store
        self._retrieval = retrieval
        self._access = access

    async def search(self, ticket_text: str, request: SearchRequest) -> SearchResult:
        """Search; if one of the searched bases is restricted, the result is restricted and has no hits.

        A ticket that bounds the results gets the best hits, never a whole base.
        """
        ticket = await self._access.verified(ticket_text)
        bindings = await self._access.bindings(ticket, request.base_ids)
        if strictest_mode(bindings) is not AccessMode.FULL:
            return SearchResult(AccessMode.RESTRICTED, whole=False, hits=())
        base_ids = [binding.base.id for binding in bindings]
        if request.whole_below_tokens > 0 and not ticket.search.is_bounded:
            everything = await self._retrieval.everything(base_ids, request.whole_below_tokens)
            if everything is not None:
                return SearchResult(AccessMode.FULL, whole=True, hits=everything)
        limit = ticket.search.max_results or request.limit
        found = await self._retrieval.search(base_ids, request.query, limit, ticket.search.filters)
        hits = tuple(hit for hit in found if hit.score >= (ticket.search.min_score or 0))
        return SearchResult(AccessMode.FULL, whole=False, hits=hits)

    async def documents(self, ticket_text: str, base_ids: Sequence[str]) -> tuple[Document, ...]:
        """List documents by base and name.

        Raises:
            PermissionDenied: one base of the ticket is restricted, so the whole turn is.
        """
        ticket = await self._access.verified(ticket_text)
        await self._require_unrestricted(ticket)
        bindings = await self._access.bindings(ticket, base_ids)
        documents = await self._store.all_documents([binding.base.id for binding in bindings])
        return tuple(document for document in documents if ticket.search.takes(document.attributes))

    async def read(self, ticket_text: str, file_id: str, offset: int, limit: int) -> TextPage:
        """Read up to `limit` characters of a document from `offset`.

        Raises:
            NotFound: there is no such document in the bases of the ticket.
            PermissionDenied: one base of the ticket is restricted, so the whole turn is.
        """
        ticket = await self._access.verified(ticket_text)
        await self._require_unrestricted(ticket)
        found = await self._store.documents_from([file_id])
        document = next((one for one in found if one.knowledge_base_id in ticket.base_ids), None)
        if document is None or not ticket.search.takes(document.attributes):
            raise NotFound("There is no such document.", param="file_id")
        await self._access.bindings(ticket, [document.knowledge_base_id])
        return await text_page(self._store, document, offset, limit)

    async def _require_unrestricted(self, ticket: Ticket) -> None:
        for binding in await self._access.memberships(ticket, frozenset(ticket.base_ids)):
            require_read(binding)
