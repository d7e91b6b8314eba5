"""Creating, describing, searching and deleting vector stores."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import Caller
from backend.knowledge.domain.attachments import FileCounts
from backend.knowledge.domain.knowledge import Binding, require_read
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_bases import ActiveBases, Description, KnowledgeCatalogue
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import content_rank
from backend.search.ports.index import Retrieval
from backend.vector_stores.services.store_access import NO_STORE, find_store
from backend.vector_stores.services.store_files import NewAttachment, StoreFiles
from shared.errors import NotFound
from shared.models.execution import AccessMode


class StoreView(NamedTuple):
    """A store with the role of who sees it; a restricted member is shown neither its files nor its age."""

    binding: Binding
    counts: FileCounts
    active_at: datetime

    @property
    def is_restricted(self) -> bool:
        """Whether only name and id are shown."""
        return self.binding.role.access_mode is not AccessMode.FULL


class VectorStores:
    """The stores of a caller."""

    def __init__(
        self, catalogue: KnowledgeCatalogue, attachments: AttachmentStore, files: StoreFiles, active: ActiveBases
    ) -> None:
        self._catalogue = catalogue
        self._attachments = attachments
        self._files = files
        self._active = active

    async def create(
        self, caller: Caller, description: Description, file_ids: Sequence[str], claim: KeyClaim | None
    ) -> StoreView:
        """Create a store that the caller owns, with files of theirs that are queued in the same transaction.

        Raises:
            NotFound: the caller has no such file.
            KeyHeld: another request has used the key of the claim.
        """
        files = await self._files.find_uploaded(caller, [NewAttachment(file_id) for file_id in file_ids], "file_ids")
        binding = await self._catalogue.create(
            caller, description, claim, partial(self._files.list_queued, caller, files)
        )
        self._files.wake_readers()
        return await self._view(binding)

    async def find(self, caller: Caller, store_id: str) -> StoreView:
        """Return a store as the caller may see it.

        Raises:
            NotFound: the caller is not a member.
        """
        try:
            binding = await self._catalogue.find(caller, store_id)
        except NotFound:
            raise NotFound(NO_STORE, param="vector_store_id") from None
        return await self._view(binding)

    async def page(
        self, caller: Caller, *, after: str | None, limit: int, descending: bool
    ) -> tuple[list[StoreView], bool]:
        """Return a page of the caller's stores by age, and whether there are more.

        Raises:
            NotFound: `after` names none of them.
        """
        try:
            found, has_more = await self._catalogue.page(caller, after=after, limit=limit, descending=descending)
        except NotFound as error:
            raise NotFound(NO_STORE, param=error.param) from None
        return await self._views(found), has_more

    async def describe(self, caller: Caller, store_id: str, changes: dict[str, object]) -> StoreView:
        """Change fields of the description.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller may not write.
        """
        try:
            return await self._view(await self._catalogue.describe(caller, store_id, changes))
        except NotFound:
            raise NotFound(NO_STORE, param="vector_store_id") from None

    async def delete(self, caller: Caller, store_id: str) -> None:
        """Delete a store; the uploaded files stay.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is not an owner.
        """
        try:
            await self._catalogue.delete(caller, store_id)
        except NotFound:
            raise NotFound(NO_STORE, param="vector_store_id") from None

    async def _view(self, binding: Binding) -> StoreView:
        return (await self._views([binding]))[0]

    async def _views(self, bindings: Sequence[Binding]) -> list[StoreView]:
        counts = await self._attachments.file_counts(
            [one.base.id for one in bindings if one.role.access_mode is AccessMode.FULL]
        )
        return [self._show(binding, counts.get(binding.base.id, FileCounts())) for binding in bindings]

    def _show(self, binding: Binding, counts: FileCounts) -> StoreView:
        base = binding.base
        instants = (base.created_at, base.last_active_at, counts.active_at, self._active.last_use(base.id))
        return StoreView(binding, counts, max(instant for instant in instants if instant is not None))


class StoreQuery(NamedTuple):
    """A search: what it asks, how many results it wants, and which files and scores it takes."""

    queries: Sequence[str]
    limit: int
    filters: Filter | None
    min_score: float


class SearchStore:
    """Finds chunks for members who may read them."""

    def __init__(self, store: KnowledgeStore, retrieval: Retrieval) -> None:
        self._store = store
        self._retrieval = retrieval

    async def search(self, caller: Caller, store_id: str, asked: StoreQuery) -> list[ChunkHit]:
        """Return the best chunks, best first; of several queries each chunk has the best score.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        require_read(await find_store(self._store, caller, store_id))
        best: dict[str, ChunkHit] = {}
        for query in asked.queries:
            for hit in await self._retrieval.search([store_id], query, asked.limit, asked.filters):
                known = best.get(hit.chunk.id)
                if hit.score >= asked.min_score and (known is None or hit.score > known.score):
                    best[hit.chunk.id] = hit
        return sorted(best.values(), key=content_rank)[: asked.limit]
