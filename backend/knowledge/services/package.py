"""What the packages above build their use cases over."""

from dataclasses import dataclass

from backend.extraction.ports import DocumentReader
from backend.foundation.services.parts import Part
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_bases import ActiveBases, KnowledgeCatalogue
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.search.ports.index import Retrieval


@dataclass(frozen=True)
class KnowledgePackage:
    """What the package adds to the process, and what the packages above build their use cases over."""

    part: Part
    store: KnowledgeStore
    retrieval: Retrieval
    reader: DocumentReader
    attachments: AttachmentStore
    active: ActiveBases
    bases: KnowledgeCatalogue
    descriptions: SafeDescriptions
