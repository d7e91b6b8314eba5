"""Vectors that resemble those of a model, and an embedder over them that answers at once."""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.embeddings.domain import ConfiguredEmbedder, EmbeddedQuery, EmbeddingModel, TextForm, TextKind, Vector
from backend.embeddings.services.centred_embedder import REFERENCE_DIGEST

DIMENSION = 384
HEAPS = 1_500
"""Where no vectors of real texts are kept, made-up ones lie in so many heaps."""

KEPT = Path("var/bench/vectors.db")
_CONFIGURED = ConfiguredEmbedder(
    model="counted", query=TextForm(input_type="query"), passage=TextForm(input_type="passage")
)
MODEL = EmbeddingModel(name=f"{_CONFIGURED.stored_name}~{REFERENCE_DIGEST}", dimension=DIMENSION)
"""What a backend calls the counting embedder: it takes the vectors of the bench for those of its own model."""

Rows = NDArray[np.float32]


def made_rows(count: int, seed: int = 7) -> Rows:
    """Return vectors of real texts where `make eval-retrieval` has left some, each with others that lie near it."""
    dice = np.random.default_rng(seed)
    first = _kept()
    if len(first) < HEAPS:
        first = dice.standard_normal((HEAPS, DIMENSION), dtype=np.float32)
    centred = (first - first.mean(axis=0)).astype(np.float32)
    return near(_of_length_1(centred)[np.arange(count) % len(first)], 0.5, dice)


def near(rows: Rows, distance: float, dice: np.random.Generator) -> Rows:
    """Return for each vector one that lies so far from it."""
    away = _of_length_1(dice.standard_normal(rows.shape, dtype=np.float32)) * distance
    return _of_length_1((rows + away).astype(np.float32))


def _kept() -> Rows:
    if not KEPT.exists():
        return np.zeros((0, DIMENSION), np.float32)
    with closing(sqlite3.connect(KEPT)) as database:
        found = b"".join(row[0] for row in database.execute("SELECT numbers FROM vector ORDER BY digest"))
    return np.frombuffer(found, np.float32).reshape(-1, DIMENSION)


def _of_length_1(rows: Rows) -> Rows:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class InstantEmbedder:
    """An `Embedder` and a `QuestionEmbedding` over vectors that are there: a text begins with the number of its own."""

    def __init__(self, passages: Rows, questions: Rows) -> None:
        self._passages, self._questions = passages, questions

    async def model(self) -> EmbeddingModel:
        return MODEL

    async def prepare(self) -> None:
        """Do nothing."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        del kind
        return tuple(Vector(self._passages[number_in(text)].tobytes()) for text in texts)

    async def vector_of(self, query: str, asked_of: Collection[str] = ()) -> EmbeddedQuery:
        return EmbeddedQuery(MODEL, Vector(self._questions[number_in(query)].tobytes()))


def number_in(text: str) -> int:
    """Return the number at the beginning of a text."""
    return int(text.split(" ", 1)[0])
