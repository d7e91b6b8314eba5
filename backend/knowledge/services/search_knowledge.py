"""A member's own search of bases that they may read."""

from collections.abc import Sequence

from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_read
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.ports.index import Retrieval

MAX_RESULTS = 50


class SearchKnowledge:
    """Finds chunks for members who may read them."""

    def __init__(self, store: KnowledgeStore, retrieval: Retrieval) -> None:
        self._store = store
        self._retrieval = retrieval

    async def search(
        self, caller: Caller, base_id: str, query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        return await self.search_in([await find_binding(self._store, caller, base_id)], query, limit, filters)

    async def search_in(
        self, bindings: Sequence[Binding], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks of all these bases together, best first.

        Raises:
            PermissionDenied: the caller is restricted in one of them.
        """
        for binding in bindings:
            require_read(binding)
        return await self._retrieval.search([binding.base.id for binding in bindings], query, limit, filters)
