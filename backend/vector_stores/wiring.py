"""The services of vector stores, built over those of knowledge and of files."""

import asyncio
from typing import NamedTuple

from backend.files.services import FilePackage
from backend.foundation.services.parts import Loop, Part
from backend.knowledge.services.package import KnowledgePackage
from backend.vector_stores.services.file_indexes import FileIndexes, UploadsById
from backend.vector_stores.services.reading import READERS, AttachedFileReading, ReadingTerms
from backend.vector_stores.services.store_files import StoreFiles
from backend.vector_stores.services.stores import SearchStore, VectorStores
from shared.clock import Clock


class VectorStorePackage(NamedTuple):
    """What the package adds to the process, and the texts of uploaded files for the packages above."""

    part: Part
    file_indexes: FileIndexes
    uploads: UploadsById


def build_vector_stores(
    knowledge: KnowledgePackage,
    files: FilePackage,
    clock: Clock,
    *,
    is_only_replica: bool,
) -> VectorStorePackage:
    """Build the package."""
    store, attachments, wake = knowledge.store, knowledge.attachments, asyncio.Event()
    store_files = StoreFiles(store, attachments, files.services, wake, clock)
    stores = VectorStores(knowledge.bases, attachments, store_files, knowledge.active)
    terms = ReadingTerms(is_only_replica)
    reading = AttachedFileReading(attachments, files.store, store, knowledge.reader, wake, terms)
    loops = [Loop(f"read_files_{each}", reading.step) for each in range(READERS)]
    file_indexes = FileIndexes(store, attachments, files.store, wake, clock)
    part = Part((stores, store_files, SearchStore(store, knowledge.retrieval)), tuple(loops))
    return VectorStorePackage(part, file_indexes, UploadsById(files.services, file_indexes))
