"""The progress of embedding of bases, for those who may read them."""

from collections.abc import Mapping, Sequence

from backend.embeddings.domain import EmbeddingModel
from backend.embeddings.ports import Embedder
from backend.knowledge.domain.knowledge import Binding, Document
from backend.search.ports.vectors import ChunkVectors, EmbeddingProgress
from backend.search.services.embedding_worker import EmbeddingPace
from shared.errors import Unavailable
from shared.models.execution import AccessMode


class KnowledgeProgress:
    """Tells progress; nothing where the operator has set up no embedder, or it is away before its first use."""

    def __init__(self, vectors: ChunkVectors, embedder: Embedder | None, pace: EmbeddingPace) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._pace = pace

    async def of(self, bindings: Sequence[Binding]) -> Mapping[str, EmbeddingProgress]:
        """Return the progress of the bases that are to be embedded and whose text the caller may read.

        Raises:
            Unavailable: the database is away.
        """
        base_ids = [each.base.id for each in bindings if _is_told(each)]
        model = await self._model() if base_ids else None
        if model is None:
            return {}
        found = await self._vectors.progress(base_ids, model)
        return {
            base_id: each._replace(seconds_left=self._pace.seconds_for(each.waiting_tokens))
            for base_id, each in found.items()
        }

    async def of_documents(self, binding: Binding, documents: Sequence[Document]) -> Mapping[str, int]:
        """Return how many chunks of each of these documents of a base have a vector, where the base is to be embedded.

        Raises:
            Unavailable: the database is away.
        """
        model = await self._model() if documents and _is_told(binding) else None
        if model is None:
            return {}
        ids = [document.id for document in documents]
        return {**dict.fromkeys(ids, 0), **await self._vectors.count_embedded_chunks(ids, model)}

    async def _model(self) -> EmbeddingModel | None:
        if self._embedder is None:
            return None
        try:
            return await self._embedder.model()
        except Unavailable:
            return None


def _is_told(binding: Binding) -> bool:
    return binding.base.embed and binding.role.access_mode is AccessMode.FULL
