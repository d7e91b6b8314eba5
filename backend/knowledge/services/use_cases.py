"""The use cases of knowledge, as one value for the application and the HTTP routes."""

from dataclasses import dataclass

from backend.extraction.ports import DocumentReader
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.ingest_document import IngestDocument
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import KnowledgeDocuments
from backend.knowledge.services.knowledge_members import KnowledgeMembers
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.services.search_knowledge import SearchKnowledge
from backend.search.ports.index import Retrieval
from shared.clock import Clock


@dataclass(frozen=True)
class KnowledgePorts:
    """The adapters that knowledge needs."""

    store: KnowledgeStore
    retrieval: Retrieval
    reader: DocumentReader
    clock: Clock


@dataclass(frozen=True)
class KnowledgeServices:
    """The use cases of members."""

    bases: KnowledgeCatalogue
    members: KnowledgeMembers
    documents: KnowledgeDocuments
    ingest: IngestDocument
    search: SearchKnowledge
    progress: KnowledgeProgress


def build_knowledge_services(
    ports: KnowledgePorts, descriptions: SafeDescriptions, progress: KnowledgeProgress
) -> KnowledgeServices:
    """Build the use cases."""
    return KnowledgeServices(
        bases=KnowledgeCatalogue(ports.store, descriptions, ports.clock),
        members=KnowledgeMembers(ports.store),
        documents=KnowledgeDocuments(ports.store),
        ingest=IngestDocument(ports.store, ports.reader, ports.clock),
        search=SearchKnowledge(ports.store, ports.retrieval),
        progress=progress,
    )
