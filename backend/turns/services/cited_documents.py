"""Looking up the documents that an answer cites."""

from collections.abc import Iterable

from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Unavailable


class CitedDocuments:
    """Finds cited documents by the ids in their citations."""

    def __init__(self, knowledge: KnowledgeStore) -> None:
        self._knowledge = knowledge

    async def __call__(self, document_ids: Iterable[str]) -> tuple[Document, ...]:
        """Return those documents that still exist; none while the database is away, because the answer is there."""
        found: list[Document] = []
        try:
            for document_id in dict.fromkeys(document_ids):
                document = await self._knowledge.document(document_id)
                found += [document] if document is not None else []
        except Unavailable:
            return tuple(found)
        return tuple(found)
