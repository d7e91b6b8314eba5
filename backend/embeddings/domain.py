"""Texts as vectors: numbers whose direction tells what a text means, whatever its words or its language."""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from math import fsum, hypot, isfinite
from typing import NamedTuple, NewType

from shared.models.values import JsonObject, Value

Vector = NewType("Vector", bytes)
"""The numbers of a vector of length 1, each in the four bytes of a `float` of this machine."""

ModerationInput = str | list[str] | list[JsonObject]
"""What is to be judged in OpenAI's form: a text, several texts, or the parts of one input, texts and images."""

_FLOAT = "f"
_WORDS = re.compile(r"[^\W\d_]+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_CHARACTERS_OF_A_WORD = 2
_DIGEST_CHARACTERS = 12


class TextKind(StrEnum):
    """What a text is for: many models embed questions and what answers them in different ways."""

    QUERY = "query"
    PASSAGE = "passage"


class WritingSystem(StrEnum):
    """The letters of most words of a text, as far as the middle of its language is known."""

    LATIN = "latin"
    HAN = "han"
    OTHER = "other"


class TextForm(Value):
    """How a model is told what a text is for: by words before the text, by `input_type` beside it, or not at all."""

    prefix: str = ""
    input_type: str = ""


class EmbeddingModel(Value):
    """What made a vector; only vectors of one model can be compared.

    `name` changes with everything that changes the vectors, the prefixes of texts included. `dimension` is how many
    numbers a vector has.
    """

    name: str
    dimension: int


class ConfiguredEmbedder(Value):
    """The model that the operator has named, and how it is told what a text is for."""

    model: str
    query: TextForm = TextForm()
    passage: TextForm = TextForm()

    @property
    def stored_name(self) -> str:
        """The name that stands beside stored vectors: another prefix makes other vectors, and thereby another name."""
        forms = "\0".join((*self.query.model_dump().values(), *self.passage.model_dump().values()))
        return f"{self.model}#{sha256(forms.encode()).hexdigest()[:_DIGEST_CHARACTERS]}"

    def form_of(self, kind: TextKind) -> TextForm:
        """Return how texts of a kind are sent."""
        return self.query if kind is TextKind.QUERY else self.passage


class EmbeddedQuery(NamedTuple):
    """A question as a vector, and what made it."""

    model: EmbeddingModel
    vector: Vector


class BatchBounds(NamedTuple):
    """How many texts, and how many characters in several texts, one call to an embedder may hold."""

    texts: int
    characters: int


@dataclass(frozen=True)
class ProviderAddress:
    """Where a provider is, the key that it wants, and the proxy on the way; `name` is what errors call it."""

    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class EmbedderOptions:
    """What the operator has set of the embedder: its bounds, and how long a search waits for it."""

    address: ProviderAddress
    configured: ConfiguredEmbedder
    batch_texts: int
    concurrency: int
    timeout_seconds: float
    deadline_seconds: float


@dataclass(frozen=True)
class RerankerOptions:
    """What the operator has set of the reranker, and how long a search waits for it."""

    address: ProviderAddress
    model: str
    deadline_seconds: float


@dataclass(frozen=True)
class ProviderModel:
    """What the operator has set of a model that judges or reads, and how long one call may take."""

    address: ProviderAddress
    model: str
    timeout_seconds: float


class CallOutcome(StrEnum):
    """What became of a question's vector, or of a list that was to be reordered, in time for a search."""

    ANSWERED = "answered"
    CACHED = "cached"
    SHARED = "shared"
    LATE = "late"
    FAILED = "failed"
    REFUSED = "refused"
    PAUSED = "paused"


def text_batches(texts: Sequence[str], bounds: BatchBounds) -> Iterator[Sequence[str]]:
    """Yield the texts in order in batches within the bounds; a text that is longer than them is a batch of its own."""
    start = characters = 0
    for place, text in enumerate(texts):
        if place > start and (place - start == bounds.texts or characters + len(text) > bounds.characters):
            yield texts[start:place]
            start, characters = place, 0
        characters += len(text)
    if texts:
        yield texts[start:]


def to_vector(numbers: Sequence[float]) -> Vector:
    """Bring numbers to the length 1.

    Raises:
        ValueError: there are none, one is not finite, or all are 0.
    """
    length = hypot(*numbers)
    if not length or not isfinite(length):
        raise ValueError("a vector must have numbers, all of them finite, and not all of them 0")
    return Vector(array(_FLOAT, [number / length for number in numbers]).tobytes())


def vector_numbers(vector: Vector) -> "array[float]":
    """Return the numbers of a vector."""
    numbers = array(_FLOAT)
    numbers.frombytes(vector)
    return numbers


def find_writing_system(text: str) -> WritingSystem:
    """Return in which letters most words of a text are written; a Chinese word has about two characters."""
    words = _WORDS.findall(text)
    han = sum(len(_HAN.findall(word)) for word in words) / _CHARACTERS_OF_A_WORD
    latin = sum(_LATIN.match(word) is not None for word in words)
    others = sum(_HAN.search(word) is None and _LATIN.match(word) is None for word in words)
    if not words or others > max(han, latin):
        return WritingSystem.OTHER
    return WritingSystem.HAN if han >= latin else WritingSystem.LATIN


def middle_of(vectors: Sequence[Vector]) -> tuple[float, ...]:
    """Return the mean of some vectors of one dimension."""
    columns = zip(*map(vector_numbers, vectors), strict=True)
    return tuple(fsum(column) / len(vectors) for column in columns)


def find_direction(middle: Sequence[float], vector: Vector) -> Vector:
    """Return the direction in which a vector lies from the middle; the vector itself where it lies in the middle.

    Raises:
        ValueError: they are of different dimensions.
    """
    away = [number - mean for number, mean in zip(vector_numbers(vector), middle, strict=True)]
    return to_vector(away) if any(away) else vector
