"""The services of vector stores, built over those of knowledge and of files."""

from dataclasses import dataclass
from typing import NamedTuple

from backend.files.ports import FileStore
from backend.files.services import Files
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.services.active_bases import ActiveBases
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.use_cases import KnowledgePorts
from backend.vector_stores.services.reading import AttachedFileReading, ReadingBell, ReadingPorts
from backend.vector_stores.services.shelves import ShelfPorts, Shelves
from backend.vector_stores.services.store_files import StoreFilePorts
from backend.vector_stores.services.use_cases import VectorStoreServices, build_vector_stores


class LowerRooms(NamedTuple):
    """What the room takes of knowledge and of files."""

    knowledge: KnowledgePorts
    bases: KnowledgeCatalogue
    attachments: AttachmentStore
    active: ActiveBases
    file_store: FileStore
    files: Files


@dataclass(frozen=True)
class VectorStoreRoom:
    """The use cases, and what runs beside the requests."""

    services: VectorStoreServices
    reading: AttachedFileReading
    shelves: Shelves


def build_vector_store_room(lower: LowerRooms, *, is_only_replica: bool) -> VectorStoreRoom:
    """Build the room."""
    ports, bell = lower.knowledge, ReadingBell()
    attached = StoreFilePorts(ports.store, lower.attachments, lower.files, bell, ports.clock)
    reading = ReadingPorts(lower.attachments, lower.file_store, ports.store, ports.reader, ports.clock)
    return VectorStoreRoom(
        build_vector_stores(ports, lower.bases, attached, lower.active),
        AttachedFileReading(reading, bell, is_only_replica=is_only_replica),
        Shelves(ShelfPorts(ports.store, lower.attachments, lower.file_store, bell, ports.clock)),
    )
