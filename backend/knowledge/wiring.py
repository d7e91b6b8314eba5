"""The services of knowledge, built over the database."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.extraction.ports import DocumentReader
from backend.foundation.sql.database import Database
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.services.active_bases import ActiveBases
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.services.use_cases import KnowledgePorts, KnowledgeServices, build_knowledge_services
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.documents import BaseDeletionHook
from backend.knowledge.sql.editions import SearchInDatabase
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver, TimedRetrieval
from shared.clock import Clock


@dataclass(frozen=True)
class KnowledgePackage:
    """The use cases of knowledge, and what the packages above need to build theirs."""

    store: SqlKnowledgeStore
    ports: KnowledgePorts
    descriptions: SafeDescriptions
    services: KnowledgeServices
    attachments: AttachmentStore
    active: ActiveBases
    search: SearchInDatabase


def build_knowledge(
    database: Database,
    clock: Clock,
    hooks: Sequence[BaseDeletionHook],
    search: SearchInDatabase,
    reader: DocumentReader,
) -> KnowledgePackage:
    """Build the package; each of `hooks` deletes what another package keeps about a deleted base."""
    store = SqlKnowledgeStore(database, clock, search.index, base_deletion_hooks=hooks, on_change=search.note_change)
    progress = KnowledgeProgress(search.vectors, search.embedding.embedder, search.embedding.pace)
    attachments = SqlAttachmentStore(database, clock)
    active = ActiveBases(attachments, clock)
    ports = KnowledgePorts(store, TimedRetrieval(search.ranking, search.words, active.note), reader, clock)
    descriptions = SafeDescriptions(search.runs, search.words, LoggingDescriptionObserver())
    services = build_knowledge_services(ports, descriptions, progress)
    return KnowledgePackage(store, ports, descriptions, services, attachments, active, search)
