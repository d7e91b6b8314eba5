"""The services of vector stores, built over those of knowledge and of files."""

from dataclasses import dataclass
from typing import NamedTuple

from backend.files.ports import FileStore
from backend.files.services import Files
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.services.active_bases import ActiveBases
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.use_cases import KnowledgePorts
from backend.vector_stores.services.file_indexes import FileIndexes, FileIndexPorts
from backend.vector_stores.services.reading import AttachedFileReading, ReadingPorts, WakeSignal
from backend.vector_stores.services.store_files import StoreFilePorts
from backend.vector_stores.services.use_cases import VectorStoreServices, build_vector_store_services


class LowerPackages(NamedTuple):
    """What the package takes of knowledge and of files."""

    knowledge: KnowledgePorts
    bases: KnowledgeCatalogue
    attachments: AttachmentStore
    active: ActiveBases
    file_store: FileStore
    files: Files


@dataclass(frozen=True)
class VectorStorePackage:
    """The use cases, and what runs beside the requests."""

    services: VectorStoreServices
    reading: AttachedFileReading
    file_indexes: FileIndexes


def build_vector_stores(lower: LowerPackages, *, is_only_replica: bool) -> VectorStorePackage:
    """Build the package."""
    ports, bell = lower.knowledge, WakeSignal()
    attached = StoreFilePorts(ports.store, lower.attachments, lower.files, bell, ports.clock)
    reading = ReadingPorts(lower.attachments, lower.file_store, ports.store, ports.reader, ports.clock)
    return VectorStorePackage(
        build_vector_store_services(ports, lower.bases, attached, lower.active),
        AttachedFileReading(reading, bell, is_only_replica=is_only_replica),
        FileIndexes(FileIndexPorts(ports.store, lower.attachments, lower.file_store, bell, ports.clock)),
    )
