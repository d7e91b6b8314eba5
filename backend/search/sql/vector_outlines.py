"""Vectors in a byte for each number, whose products with another vector are known within bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.search.sql.word_postings import Numbers

_STEPS = 127
_BYTES_BESIDE = 16
_NUMBERS_AT_ONCE = 262_144
"""So few that BLAS multiplies them in the thread of the caller: threads of its own wait for each other, which on a busy
machine takes ten times as long as the product; and that what is multiplied stays in the cache of a core."""

_ROUNDING = 1e-5
"""What the arithmetic itself may add to a product of vectors of length 1, in which single precision is used."""

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Outlines:
    """Outlines of vectors: `steps` times `scales` is each of them but for a rest, whose length is its `errors`.

    A product with a vector of length 1 is thereby wrong by no more than that (Cauchy and Schwarz).
    """

    numbers: Numbers
    steps: NDArray[np.int8]
    scales: _Floats
    errors: _Floats

    @staticmethod
    def bytes_of(count: int, dimension: int) -> int:
        """Return how much so many vectors take."""
        return count * (dimension + _BYTES_BESIDE)

    @property
    def size(self) -> int:
        """The bytes that these take."""
        return self.bytes_of(*self.steps.shape)

    def scores(self, vector: _Floats) -> _Floats:
        """Return the product of each outline with a vector."""
        count, dimension = self.steps.shape
        rows = max(1, _NUMBERS_AT_ONCE // dimension)
        scores, some = np.empty(count, np.float32), np.empty((min(rows, count), dimension), np.float32)
        for first in range(0, count, rows):
            end = min(first + rows, count)
            np.copyto(some[: end - first], self.steps[first:end])
            np.dot(some[: end - first], vector, out=scores[first:end])
        return scores * self.scales

    def only(self, staying: NDArray[np.bool_]) -> "Outlines":
        """Return some of them."""
        return Outlines(self.numbers[staying], self.steps[staying], self.scales[staying], self.errors[staying])


def outlines_of(numbers: Numbers, vectors: _Floats) -> Outlines:
    """Return the outlines of vectors, each a row."""
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _STEPS
    steps = np.rint(vectors / scales[:, None])
    rests = vectors - steps * scales[:, None]
    errors = np.sqrt(np.einsum("ij,ij->i", rests, rests)) + _ROUNDING
    return Outlines(numbers, steps.astype(np.int8), scales.astype(np.float32), errors.astype(np.float32))


def joined_outlines(parts: Sequence[Outlines]) -> Outlines:
    """Return the outlines of all parts as one."""
    return Outlines(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.errors for part in parts]),
    )
