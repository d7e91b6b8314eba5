"""Texts as vectors: numbers whose direction tells what a text means, whatever its words or its language."""

from array import array
from collections.abc import Sequence
from enum import StrEnum
from math import fsum, isfinite, sqrt
from typing import NamedTuple, NewType

from shared.models.values import Value

Vector = NewType("Vector", bytes)
"""The numbers of a vector of length 1, each in the four bytes of a `float` of this machine."""

_FLOAT = "f"


class TextKind(StrEnum):
    """What a text is for: many models embed questions and what answers them in different ways."""

    QUERY = "query"
    PASSAGE = "passage"


class EmbeddingModel(Value):
    """What made a vector; only vectors of one model can be compared.

    `name` changes with everything that changes the vectors, the prefixes of texts included. `dimension` is how many
    numbers a vector has.
    """

    name: str
    dimension: int


class EmbeddedQuery(NamedTuple):
    """A question as a vector, and what made it."""

    model: EmbeddingModel
    vector: Vector


def to_vector(numbers: Sequence[float]) -> Vector:
    """Bring numbers to the length 1.

    Raises:
        ValueError: there are none, one is not finite, or all are 0.
    """
    length = sqrt(fsum(number * number for number in numbers)) if all(map(isfinite, numbers)) else 0.0
    if not length or not isfinite(length):
        raise ValueError("a vector must have numbers, all of them finite, and not all of them 0")
    return Vector(array(_FLOAT, [number / length for number in numbers]).tobytes())


def vector_numbers(vector: Vector) -> "array[float]":
    """Return the numbers of a vector."""
    numbers = array(_FLOAT)
    numbers.frombytes(vector)
    return numbers
