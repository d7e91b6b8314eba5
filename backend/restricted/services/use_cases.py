"""The use cases of tickets and of restricted searches, as one value for the application and the HTTP routes."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from backend.files.services import Files
from backend.knowledge.ports.knowledge import OpenFileIndexes
from backend.knowledge.services.use_cases import KnowledgePorts
from backend.restricted.ports.restricted import AuditTrail
from backend.restricted.services.close_searches import CloseSearches
from backend.restricted.services.forget_searches import ForgetSearches
from backend.restricted.services.restricted_audit import ReadAudit
from backend.restricted.services.sealed_outcomes import SealedOutcomes
from backend.restricted.services.sealed_search import RestrictedUse, SealedSearches
from backend.restricted.services.ticket_access import TicketAccess
from backend.restricted.services.ticketed_files import TicketedFiles
from backend.restricted.services.ticketed_knowledge import TicketedKnowledge
from backend.vector_stores.services.file_indexes import FileIndexes


class UploadAccess(NamedTuple):
    """Uploaded files with their texts, and who may search those of agents."""

    files: Files
    file_indexes: FileIndexes
    open_agent_files: OpenFileIndexes


@dataclass(frozen=True)
class RestrictedServices:
    """`ticketed` and `files` are for tools of turns, searches and outcomes for the sealed room.

    `audit` is for administrators. `closing` and `forgetting` run in the background.
    """

    ticketed: TicketedKnowledge
    files: TicketedFiles
    searches: SealedSearches
    outcomes: SealedOutcomes
    audit: ReadAudit
    closing: CloseSearches
    forgetting: ForgetSearches


def build_restricted(
    use: RestrictedUse, trail: AuditTrail, knowledge: KnowledgePorts, turn_time: timedelta, uploads: UploadAccess
) -> RestrictedServices:
    """Build the use cases; `turn_time` is how long a turn may take."""
    access = TicketAccess(knowledge.store, use.clock, use.secret, uploads.open_agent_files)
    return RestrictedServices(
        ticketed=TicketedKnowledge(knowledge.store, knowledge.retrieval, access, use.audit),
        files=TicketedFiles(uploads.files, uploads.file_indexes, knowledge.store, access, use.audit),
        searches=SealedSearches(access, knowledge.retrieval, use),
        outcomes=SealedOutcomes(access, use),
        audit=ReadAudit(trail, use.secret),
        closing=CloseSearches(use.ledger, use.audit, use.clock, turn_time),
        forgetting=ForgetSearches(use.ledger, use.clock),
    )
