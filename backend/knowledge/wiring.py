"""The services of knowledge, built over the database."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.absent import NO_MEANING
from backend.extraction.ports import DocumentReader
from backend.foundation.sql.database import Database
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import ProtectedKnowledge
from backend.knowledge.services.active_bases import ActiveBases, NotedRetrieval
from backend.knowledge.services.embedding_worker import ChangedBases, EmbeddingWorker
from backend.knowledge.services.fused_retrieval import FusedRetrieval
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.services.use_cases import KnowledgePorts, KnowledgeServices, build_knowledge_services
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.documents import BaseDeletionHook
from backend.knowledge.sql.protected import SqlProtectedKnowledge
from backend.knowledge.sql.retrieval import SqlRetrieval
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.sql.vectors import SqlChunkVectors
from backend.knowledge.telemetry.embedding import CountingEmbeddingObserver
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver, TimedRetrieval
from shared.clock import Clock


@dataclass(frozen=True)
class KnowledgePackage:
    """The use cases of knowledge, and what the packages above need to build theirs."""

    store: SqlKnowledgeStore
    ports: KnowledgePorts
    protected: ProtectedKnowledge
    descriptions: SafeDescriptions
    services: KnowledgeServices
    reader: DocumentReader
    attachments: AttachmentStore
    active: ActiveBases
    meaning: MeaningPorts
    embedding: EmbeddingWorker


def build_knowledge(
    database: Database,
    clock: Clock,
    base_deletion_hooks: Sequence[BaseDeletionHook],
    meaning: MeaningPorts,
    reader: DocumentReader,
) -> KnowledgePackage:
    """Build the package; each of `base_deletion_hooks` deletes what another package keeps about a deleted base.

    `meaning` is what searches by meaning, where the operator has set that up; without it search is by words alone.
    """
    changed, vectors = ChangedBases(), SqlChunkVectors(database)
    store = SqlKnowledgeStore(database, clock, base_deletion_hooks=base_deletion_hooks, on_change=changed.note)
    words = SqlRetrieval(database)
    retrieval = words if meaning == NO_MEANING else FusedRetrieval(words, vectors, meaning)
    embedding = EmbeddingWorker(vectors, meaning.embedder, changed, CountingEmbeddingObserver(), clock)
    progress = KnowledgeProgress(vectors, meaning.embedder, embedding.pace)
    attachments = SqlAttachmentStore(database, clock)
    active = ActiveBases(attachments, clock)
    ports = KnowledgePorts(store, NotedRetrieval(TimedRetrieval(retrieval), active), reader, clock)
    protected = SqlProtectedKnowledge(database)
    descriptions = SafeDescriptions(protected, words, LoggingDescriptionObserver())
    services = build_knowledge_services(ports, descriptions, progress)
    return KnowledgePackage(
        store, ports, protected, descriptions, services, reader, attachments, active, meaning, embedding
    )
