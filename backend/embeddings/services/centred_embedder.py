"""Vectors that tell what a text means and not in which language it is written."""

import asyncio
from collections.abc import Mapping, Sequence

from backend.embeddings.domain import (
    EmbeddingModel,
    TextKind,
    Vector,
    WritingSystem,
    middle_of,
    seen_from,
    writing_system_of,
)
from backend.embeddings.ports import Embedder
from backend.embeddings.services.reference_texts import REFERENCE_DIGEST, REFERENCE_TEXTS
from shared.errors import Unavailable

_Middles = Mapping[TextKind, Mapping[WritingSystem, Sequence[float]]]


class CentredEmbedder:
    """An `Embedder` whose vectors are seen from the middle of their language, which another one's vectors tell.

    Models place the texts of a language beside each other: a question lies nearer to any text of its own language than
    to the one that answers it in another. Seen each from the middle of its own language, this difference is gone; so
    is that between questions and passages. docs/retrieval.md has the figures. Until the middles have been worked out of
    `REFERENCE_TEXTS`, questions get no vector.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._preparing = asyncio.Lock()
        self._middles: _Middles | None = None

    async def model(self) -> EmbeddingModel:
        """Return what the vectors are made by: the model, and the texts that tell the middles."""
        model = await self._embedder.model()
        return model.model_copy(update={"name": f"{model.name}~{REFERENCE_DIGEST}"})

    async def prepare(self) -> None:
        """Work out the middles."""
        await self._prepared()

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text, in order.

        Raises:
            Unavailable: the provider is away, or a question comes before the middles are known. Retryable.
            ModelRequestRejected: the provider refuses these texts, or the texts that tell the middles.
        """
        if self._middles is None and kind is TextKind.QUERY:
            raise Unavailable("The embedder is being prepared.")
        middles = (await self._prepared())[kind]
        found = await self._embedder.embed(texts, kind)
        return tuple(
            seen_from(middles[writing_system_of(text)], vector) for text, vector in zip(texts, found, strict=True)
        )

    async def _prepared(self) -> _Middles:
        async with self._preparing:
            if self._middles is None:
                self._middles = {kind: await self._middles_of(kind) for kind in TextKind}
            return self._middles

    async def _middles_of(self, kind: TextKind) -> Mapping[WritingSystem, Sequence[float]]:
        made = {system: await self._embedder.embed(texts, kind) for system, texts in REFERENCE_TEXTS[kind].items()}
        everything = [vector for vectors in made.values() for vector in vectors]
        return {
            **{system: middle_of(vectors) for system, vectors in made.items()},
            WritingSystem.OTHER: middle_of(everything),
        }
