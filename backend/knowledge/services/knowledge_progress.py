"""How far bases have been embedded, for those who may read them."""

from collections.abc import Mapping, Sequence

from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.ports.vectors import ChunkVectors, EmbeddingProgress
from backend.meaning.ports import Embedder
from shared.errors import Unavailable
from shared.models.execution import AccessMode


class KnowledgeProgress:
    """Tells progress by base; nothing where the operator has set up no embedder, or it is away before its first use."""

    def __init__(self, vectors: ChunkVectors, embedder: Embedder | None) -> None:
        self._vectors = vectors
        self._embedder = embedder

    async def of(self, bindings: Sequence[Binding]) -> Mapping[str, EmbeddingProgress]:
        """Return the progress of the bases that are to be embedded and whose text the caller may read.

        Raises:
            Unavailable: the database is away.
        """
        base_ids = [each.base.id for each in bindings if each.base.embed and each.role.access_mode is AccessMode.FULL]
        if self._embedder is None or not base_ids:
            return {}
        try:
            model = await self._embedder.model()
        except Unavailable:
            return {}
        return await self._vectors.progress(base_ids, model)
