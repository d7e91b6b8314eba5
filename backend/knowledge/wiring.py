"""The services of knowledge, built over the database."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from backend.extraction.ports import DocumentReader
from backend.foundation.services.parts import Loop, Part
from backend.foundation.services.supervision import Step
from backend.foundation.sql.database import Database
from backend.groups.services import GroupNames
from backend.knowledge.services.knowledge_access import KnowledgeMembers
from backend.knowledge.services.knowledge_bases import WRITE_ACTIVITY_SECONDS, ActiveBases, KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import IngestDocument, KnowledgeDocuments, SearchKnowledge
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.services.package import KnowledgePackage
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.document_changes import DeletionHook
from backend.knowledge.sql.editions import SearchInDatabase
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver, TimedRetrieval
from backend.search.services.embedding_worker import EmbeddingWorker
from shared.clock import Clock
from shared.models.safe_summary import RestrictedGrade


class KnowledgeTerms(NamedTuple):
    """The operator's grade for new bases, whether no other process uses this database, and the names of groups."""

    default_grade: RestrictedGrade
    is_only_replica: bool
    groups: GroupNames


def build_knowledge(
    database: Database,
    clock: Clock,
    hooks: Sequence[DeletionHook],
    search: SearchInDatabase,
    reader: DocumentReader,
    terms: KnowledgeTerms,
) -> KnowledgePackage:
    """Build the package; each of `hooks` deals with what another package keeps about a deleted base or document."""
    store = SqlKnowledgeStore(database, clock, search.index, deletion_hooks=hooks, on_change=search.note_change)
    attachments = SqlAttachmentStore(database, clock)
    active = ActiveBases(attachments, clock)
    retrieval = TimedRetrieval(search.ranking, search.words, active.note)
    descriptions = SafeDescriptions(search.runs, search.words, LoggingDescriptionObserver())
    bases = KnowledgeCatalogue(store, descriptions, clock, terms.default_grade)
    services = (
        bases,
        KnowledgeMembers(store, terms.groups),
        KnowledgeDocuments(store),
        IngestDocument(store, reader, clock),
        SearchKnowledge(store, retrieval),
        KnowledgeProgress(search.vectors, search.embedding.embedder, search.embedding.pace),
    )
    maintenance = partial(store.maintenance.run, is_only_replica=terms.is_only_replica)
    part = Part(services, knowledge_loops(active, search.embedding, maintenance))
    return KnowledgePackage(part, store, retrieval, reader, attachments, active, bases, descriptions)


def knowledge_loops(active: ActiveBases, embedding: EmbeddingWorker, maintenance: Step) -> tuple[Loop, ...]:
    """Return what runs beside the requests."""
    activity = Loop("write_activity", active.write, WRITE_ACTIVITY_SECONDS)
    return (activity, Loop("keep_index", maintenance), Loop("embed_chunks", embedding.step))
