"""Retrieval for chat_shell: the ticket of a turn names bases, and the user's present memberships decide.

A restricted search returns no text here; `SealedSearches` return it to the sealed room.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START, FILE_INDEX_OWNER, FileIndexState
from backend.knowledge.domain.knowledge import Binding, Document, MemberRole, is_strict, require_read, strictest_mode
from backend.knowledge.domain.tickets import Ticket, verify_ticket
from backend.knowledge.ports.knowledge import KnowledgeStore, OpenFileIndexes
from backend.knowledge.services.knowledge_documents import TextPage, text_page
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.restricted.domain.restricted import SealedSearch, SearchedBase, SearchRequest
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.search.domain.chunks import ChunkHit
from backend.search.ports.index import Retrieval
from backend.search.services.joined_copies import join_copies
from backend.vector_stores.services.file_indexes import UploadsById
from shared.clock import Clock
from shared.errors import NotFound, PermissionDenied, Unauthenticated, Unavailable
from shared.models.execution import AccessMode
from shared.models.safe_summary import SummaryVersions
from shared.telemetry import bind_turn


class TicketAccess:
    """Reads tickets, and looks up the bases in them at each use; `secret` is the key of tickets."""

    def __init__(
        self,
        store: KnowledgeStore,
        open_file_indexes: OpenFileIndexes,
        descriptions: SafeDescriptions,
        audit: RestrictedAudit,
        clock: Clock,
        secret: str,
    ) -> None:
        self._store = store
        self._open_file_indexes = open_file_indexes
        self._descriptions = descriptions
        self._audit = audit
        self._clock = clock
        self._secret = secret

    async def verify(self, ticket_text: str) -> Ticket:
        """Return the ticket, and add its conversation and turn to all further log lines.

        Raises:
            Unauthenticated: the ticket is forged, malformed or expired; that is put on record.
        """
        try:
            ticket = verify_ticket(ticket_text, self._secret, self._clock.now())
        except Unauthenticated:
            await self._audit.record_bad_ticket()
            raise
        bind_turn(conversation_id=ticket.conversation_id, turn_id=ticket.turn_id)
        return ticket

    async def bindings(self, ticket: Ticket, base_ids: Sequence[str]) -> tuple[Binding, ...]:
        """Return the named bases, or all of the ticket where none is named, with the user's present role.

        Raises:
            PermissionDenied: a base is not in the ticket, or the user is no member of it.
        """
        wanted = find_wanted_bases(ticket, base_ids)
        bindings = await self.memberships(ticket, wanted)
        if len(bindings) != len(wanted):
            raise PermissionDenied("The user is no longer a member of a knowledge base.", param="knowledge_base_ids")
        return bindings

    async def memberships(self, ticket: Ticket, base_ids: frozenset[str]) -> tuple[Binding, ...]:
        """Return those of the bases of which the user is a member today, or whose agent they may use."""
        bound = await self._store.bindings(ticket.tenant, ticket.user_id, sorted(base_ids))
        file_index_ids = sorted(base_id for base_id in base_ids if base_id.startswith(FILE_INDEX_ID_START))
        return (*bound, *await self._file_indexes(ticket, file_index_ids)) if file_index_ids else bound

    async def _file_indexes(self, ticket: Ticket, file_index_ids: Sequence[str]) -> tuple[Binding, ...]:
        opened = await self._open_file_indexes(ticket.tenant, ticket.user_id, file_index_ids)
        found = await self._store.bindings(ticket.tenant, FILE_INDEX_OWNER, sorted(opened))
        return tuple(Binding(base=binding.base, role=MemberRole.READER) for binding in found)

    async def find_areas(self, bindings: Sequence[Binding]) -> tuple[str, ...] | None:
        """Return what findings of a search can be about, or None where prose may leave all of its bases."""
        is_coded = await self.is_strict(bindings)
        return await self._descriptions.list_areas(bound.base for bound in bindings) if is_coded else None

    async def is_strict(self, bindings: Sequence[Binding]) -> bool:
        """Say whether coded findings alone may leave a search of these bases."""
        return is_strict(bindings, await self._store.count_documents([bound.base.id for bound in bindings]))

    def search_of(
        self, ticket: Ticket, bases: tuple[SearchedBase, ...], versions: SummaryVersions, cache_key: str = ""
    ) -> SealedSearch:
        """Return the search of a ticket that begins now, without an id."""
        return SealedSearch(
            id="",
            tenant=ticket.tenant,
            user_id=ticket.user_id,
            conversation_id=ticket.budget_id,
            turn_id=ticket.turn_id,
            searched_at=self._clock.now(),
            bases=bases,
            versions=versions,
            cache_key=cache_key,
            via={base.id: base.via for base in bases if base.via is not None} or None,
        )


def list_searched_bases(bindings: Sequence[Binding]) -> tuple[SearchedBase, ...]:
    """Return the bases as they are now."""
    return tuple(
        SearchedBase(id=bound.base.id, version=bound.base.version, role=bound.role, via=bound.via) for bound in bindings
    )


def find_wanted_bases(ticket: Ticket, base_ids: Sequence[str]) -> frozenset[str]:
    """Return the named bases, or all of the ticket where none is named.

    Raises:
        PermissionDenied: one is not in the ticket.
    """
    wanted = frozenset(base_ids) or frozenset(ticket.base_ids)
    if not wanted <= frozenset(ticket.base_ids):
        raise PermissionDenied("A knowledge base is not in the ticket.", param="knowledge_base_ids")
    return wanted


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
        ticket = await self._access.verify(ticket_text)
        bindings = await self._access.bindings(ticket, request.base_ids)
        if strictest_mode(bindings) is not AccessMode.FULL:
            return SearchResult(AccessMode.RESTRICTED, whole=False, hits=())
        base_ids = [binding.base.id for binding in bindings]
        if request.whole_below_tokens > 0 and not ticket.search.is_bounded:
            everything = await self._retrieval.read_all(base_ids, request.whole_below_tokens)
            if everything is not None:
                return SearchResult(AccessMode.FULL, whole=True, hits=join_copies(everything))
        limit = ticket.search.max_results or request.limit
        found = await self._retrieval.search(base_ids, request.query, limit, ticket.search.filters)
        hits = tuple(hit for hit in found if hit.score >= (ticket.search.min_score or 0))
        return SearchResult(AccessMode.FULL, whole=False, hits=hits)

    async def documents(self, ticket_text: str, base_ids: Sequence[str]) -> tuple[Document, ...]:
        """List documents by base and name.

        Raises:
            PermissionDenied: one base of the ticket is restricted, so the whole turn is.
        """
        ticket = await self._access.verify(ticket_text)
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
        ticket = await self._access.verify(ticket_text)
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


WAIT_SECONDS = 5.0
"""How long a page waits for a file that is being read."""


class TicketedFiles:
    """Pages of the files that a user has attached to their messages."""

    def __init__(self, uploads: UploadsById, store: KnowledgeStore, access: TicketAccess) -> None:
        self._uploads = uploads
        self._store = store
        self._access = access

    async def read(self, ticket_text: str, file_id: str, offset: int, limit: int) -> TextPage:
        """Return up to `limit` characters from `offset` of the text of a file.

        Raises:
            Unauthenticated: the ticket is forged or expired.
            NotFound: the ticket does not name it, its user has deleted it, or it has no text.
            Unavailable: it is still being read. Retryable.
        """
        ticket = await self._access.verify(ticket_text)
        caller = Caller(user_id=ticket.user_id, tenant=ticket.tenant, role=KeyRole.USER)
        is_named = file_id in ticket.file_ids
        file = (await self._uploads.find(caller, [file_id], WAIT_SECONDS)).get(file_id) if is_named else None
        if file is None:
            raise NotFound("There is no such file.", param="file_id")
        if file.state is FileIndexState.BEING_READ:
            raise Unavailable("The file is still being read.")
        if file.document is None:
            raise NotFound("The file has no text.", param="file_id")
        return await text_page(self._store, file.document, offset, limit)
