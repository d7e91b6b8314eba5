"""The use cases of vector stores, as one value for the application and the HTTP routes."""

from dataclasses import dataclass

from backend.knowledge.services.active_bases import ActiveBases
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.use_cases import KnowledgePorts
from backend.vector_stores.services.search import SearchStore
from backend.vector_stores.services.store_files import StoreFilePorts, StoreFiles
from backend.vector_stores.services.stores import VectorStores


@dataclass(frozen=True)
class VectorStoreServices:
    """The use cases of members."""

    stores: VectorStores
    files: StoreFiles
    search: SearchStore


def build_vector_store_services(
    knowledge: KnowledgePorts, catalogue: KnowledgeCatalogue, ports: StoreFilePorts, active: ActiveBases
) -> VectorStoreServices:
    """Build the use cases."""
    files = StoreFiles(ports)
    return VectorStoreServices(
        stores=VectorStores(catalogue, ports.attachments, files, active),
        files=files,
        search=SearchStore(knowledge.store, knowledge.retrieval),
    )
