"""Access by ticket: the ticket names bases, and the user's present memberships decide."""

from collections.abc import Sequence

from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START, FILE_INDEX_OWNER
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.knowledge.domain.tickets import Ticket, verify_ticket
from backend.knowledge.ports.knowledge import KnowledgeStore, OpenFileIndexes
from backend.restricted.domain.restricted import SealedSearch, SearchedBase
from backend.restricted.services.restricted_audit import RestrictedAudit
from shared.clock import Clock
from shared.errors import PermissionDenied, Unauthenticated
from shared.models.safe_summary import SummaryVersions
from shared.telemetry import bind_turn


class TicketAccess:
    """Reads tickets, and looks up the bases in them at each use; `secret` is the key of tickets."""

    def __init__(
        self,
        store: KnowledgeStore,
        open_file_indexes: OpenFileIndexes,
        audit: RestrictedAudit,
        clock: Clock,
        secret: str,
    ) -> None:
        self._store = store
        self._open_file_indexes = open_file_indexes
        self._audit = audit
        self._clock = clock
        self._secret = secret

    async def verified(self, ticket_text: str) -> Ticket:
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
        wanted = wanted_bases(ticket, base_ids)
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
        )


def searched_bases(bindings: Sequence[Binding]) -> tuple[SearchedBase, ...]:
    """Return the bases as they are now."""
    return tuple(
        SearchedBase(id=binding.base.id, version=binding.base.version, role=binding.role) for binding in bindings
    )


def wanted_bases(ticket: Ticket, base_ids: Sequence[str]) -> frozenset[str]:
    """Return the named bases, or all of the ticket where none is named.

    Raises:
        PermissionDenied: one is not in the ticket.
    """
    wanted = frozenset(base_ids) or frozenset(ticket.base_ids)
    if not wanted <= frozenset(ticket.base_ids):
        raise PermissionDenied("A knowledge base is not in the ticket.", param="knowledge_base_ids")
    return wanted
