"""Vectors that tell what a text means and not in which language it is written."""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from backend.embeddings.domain import (
    EmbeddingModel,
    TextKind,
    Vector,
    WritingSystem,
    find_direction,
    find_writing_system,
    middle_of,
)
from backend.embeddings.ports import Embedder
from shared.errors import Unavailable

_Middles = Mapping[TextKind, Mapping[WritingSystem, Sequence[float]]]
_TEXTS = Path(__file__).with_name("reference_texts")

REFERENCE_TEXTS: Final = {
    kind: {
        system: tuple((_TEXTS / f"{kind}_{system}.txt").read_text(encoding="utf-8").splitlines())
        for system in (WritingSystem.LATIN, WritingSystem.HAN)
    }
    for kind in TextKind
}
"""Texts about nothing in particular, in two languages, from which the middle of each language is worked out.

Each pair of an English and a Chinese text says the same, and the texts are about as different as texts of bases are.
They are the project's own, and were written before anything was measured with them. Another word in them makes other
vectors: `REFERENCE_DIGEST` is part of the name of what made a vector.
"""

REFERENCE_DIGEST: Final = sha256(repr(REFERENCE_TEXTS).encode()).hexdigest()[:12]


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
        await self._prepare()

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text, in order.

        Raises:
            Unavailable: the provider is away, or a question comes before the middles are known. Retryable.
            ModelRequestRejected: the provider refuses these texts, or the texts that tell the middles.
        """
        if self._middles is None and kind is TextKind.QUERY:
            raise Unavailable("The embedder is being prepared.")
        middles = (await self._prepare())[kind]
        found = await self._embedder.embed(texts, kind)
        return tuple(
            find_direction(middles[find_writing_system(text)], vector)
            for text, vector in zip(texts, found, strict=True)
        )

    async def _prepare(self) -> _Middles:
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
