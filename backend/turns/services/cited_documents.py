"""Looking up the documents that an answer cites."""

from collections.abc import Iterable, Mapping

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Unavailable
from shared.models.execution import AccessMode


class CitedDocuments:
    """Finds cited documents by the ids in their citations."""

    def __init__(self, knowledge: KnowledgeStore) -> None:
        self._knowledge = knowledge

    async def __call__(self, caller: Caller, source_ids: Iterable[str]) -> Mapping[str, Document]:
        """Return by id those documents that still exist and that the caller may read.

        A file that is attached to several bases gives the document of the first. None is returned while the database is
        away, because the answer is there.
        """
        wanted = list(dict.fromkeys(source_ids))
        if not wanted:
            return {}
        try:
            found = await self._knowledge.documents_from(wanted)
            base_ids = sorted({document.knowledge_base_id for document in found})
            bindings = await self._knowledge.bindings(caller.tenant, caller.user_id, base_ids)
        except Unavailable:
            return {}
        readable = {one.base.id for one in bindings if one.role.access_mode is AccessMode.FULL}
        return {one.source_id: one for one in reversed(found) if one.knowledge_base_id in readable}
