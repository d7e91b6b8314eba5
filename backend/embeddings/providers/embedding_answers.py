"""Read the answer of OpenAI's embeddings API, which nothing is believed of before it is checked."""

import sys
from array import array
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import cast

from backend.embeddings.domain import Vector, to_vector
from backend.foundation.domain.json_objects import Steps
from shared.models.values import JsonValue, objects_in

MAX_DIMENSION = 8_192
"""More than any model of today has; what a provider sends may be anything."""

_FLOAT_BYTES = 4


def vectors_in(answer: JsonValue, count: int) -> Steps[tuple[Vector, ...]]:
    """Return a vector for each of `count` texts, in their order; a step reads one.

    Raises:
        ValueError: the answer is none of the API to a request with so many texts; the message says why.
    """
    found = objects_in(answer.get("data")) if isinstance(answer, dict) else []
    if len(found) != count:
        raise ValueError(f"{len(found)} vectors for {count} texts")
    vectors: dict[int, Vector] = {}
    for place, each in enumerate(found):
        index = each.get("index", place)
        if type(index) is not int or not 0 <= index < count or index in vectors:
            raise ValueError("an index that no text has, or that another vector has")
        vectors[index] = to_vector(_numbers(each.get("embedding")))
        yield None
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise ValueError("vectors of several dimensions")
    return tuple(vectors[index] for index in range(count))


def _numbers(embedding: JsonValue) -> Sequence[float]:
    """Return the numbers of a vector, which come as numbers or as base64 of floats in little-endian order."""
    if isinstance(embedding, str):
        numbers: Sequence[float] = _decoded(embedding)
    elif isinstance(embedding, list) and all(type(number) in (float, int) for number in embedding):
        numbers = cast(list[float], embedding)
    else:
        raise ValueError("a vector that is neither a list of numbers nor base64")
    if not 1 <= len(numbers) <= MAX_DIMENSION:
        raise ValueError(f"a vector that has not 1 to {MAX_DIMENSION} numbers")
    return numbers


def _decoded(text: str) -> "array[float]":
    try:
        raw = b64decode(text, validate=True)
    except NotBase64:
        raise ValueError("a vector that is no base64") from None
    if len(raw) % _FLOAT_BYTES:
        raise ValueError("a vector whose bytes are no floats")
    numbers = array("f", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
