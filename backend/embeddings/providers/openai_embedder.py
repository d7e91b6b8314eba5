"""An embedder behind OpenAI's `POST /embeddings`, which vLLM, TEI, Ollama, Infinity and others speak as well."""

import asyncio
import sys
from array import array
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from backend.embeddings.domain import (
    BatchBounds,
    ConfiguredEmbedder,
    EmbeddingModel,
    TextKind,
    Vector,
    text_batches,
    to_vector,
)
from backend.embeddings.providers.json_calls import AnswerBounds, JsonCalls
from backend.foundation.domain.json_objects import Steps
from backend.foundation.services.steps import run_cooperatively
from shared.errors import ModelError, ModelProtocolViolated, ModelRequestRejected, Unavailable
from shared.models.values import JsonObject, JsonValue, objects_in
from shared.retries import RetryPolicy

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
        numbers: Sequence[float] = _decode(embedding)
    elif isinstance(embedding, list) and all(type(number) in (float, int) for number in embedding):
        numbers = cast(list[float], embedding)
    else:
        raise ValueError("a vector that is neither a list of numbers nor base64")
    if not 1 <= len(numbers) <= MAX_DIMENSION:
        raise ValueError(f"a vector that has not 1 to {MAX_DIMENSION} numbers")
    return numbers


def _decode(text: str) -> "array[float]":
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


EMBEDDINGS_PATH = "/embeddings"

MAX_ANSWER_BYTES = 4_194_304
MAX_ANSWER_VALUES = 262_144
"""To parse so much holds the event loop for some 20 ms."""

_BYTES_OF_VECTOR = 24 * MAX_DIMENSION
_BYTES_AROUND = 65_536
_PROBE = "test"
_VECTOR_NUMBER_BYTES = 4


@dataclass(frozen=True)
class CallPlaces:
    """How many calls for texts of one kind run at a time, and when they are sent again."""

    places: asyncio.Semaphore
    retry: RetryPolicy


class OpenAIEmbedder:
    """Implements `backend.embeddings.ports.Embedder`; texts of one kind do not wait for others."""

    def __init__(
        self,
        calls: JsonCalls,
        configured: ConfiguredEmbedder,
        bounds: BatchBounds,
        places: Mapping[TextKind, CallPlaces],
    ) -> None:
        self._calls = calls
        self._configured = configured
        self._bounds = bounds
        self._places = places
        self._dimension: int | None = None

    async def model(self) -> EmbeddingModel:
        """Return what the vectors are made by; while the dimension is unknown, a short text is embedded."""
        if self._dimension is None:
            await self.embed([_PROBE], TextKind.PASSAGE)
        return EmbeddingModel(name=self._configured.stored_name, dimension=self._dimension or 0)

    async def prepare(self) -> None:
        """Do nothing: the first text needs no more than the others."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text, in order."""
        try:
            async with asyncio.TaskGroup() as group:
                batches = [group.create_task(self._embed(each, kind)) for each in text_batches(texts, self._bounds)]
        except ExceptionGroup as failures:
            raise _as_promised(failures.exceptions[0]) from failures
        vectors = tuple(vector for batch in batches for vector in batch.result())
        for vector in vectors:
            self._check_dimension(len(vector) // _VECTOR_NUMBER_BYTES)
        return vectors

    async def _embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        try:
            return await self._call(texts, kind)
        except ModelRequestRejected:
            await self._check_refusal_is_for_text(kind)
            if len(texts) == 1:
                raise
        middle = len(texts) // 2
        return (*await self._embed(texts[:middle], kind), *await self._embed(texts[middle:], kind))

    async def _check_refusal_is_for_text(self, kind: TextKind) -> None:
        """Find out whether a provider refuses whatever it is sent: such a refusal says nothing about texts.

        Raises:
            Unavailable: it refuses a text that nobody can object to. Retryable.
        """
        try:
            await self._call([_PROBE], kind)
        except ModelRequestRejected as error:
            raise Unavailable("the embedder rejects every request; is BACKEND_EMBEDDING_MODEL right?") from error

    async def _call(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        of_kind = self._places[kind]
        async with of_kind.places:
            return await of_kind.retry.repeat(lambda: self._post(texts, kind))

    async def _post(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        form, count = self._configured.form_of(kind), len(texts)
        body: JsonObject = {
            "model": self._configured.model,
            "input": [form.prefix + text for text in texts],
            "encoding_format": "base64",
        }
        if form.input_type:
            body["input_type"] = form.input_type
        size = min(_BYTES_AROUND + count * _BYTES_OF_VECTOR, MAX_ANSWER_BYTES)
        answer = await self._calls.post(body, AnswerBounds(size, MAX_ANSWER_VALUES))
        try:
            return await run_cooperatively(vectors_in(answer, count))
        except ValueError as error:
            raise ModelProtocolViolated(f"the embedder answered with {error}") from error

    def _check_dimension(self, dimension: int) -> None:
        if self._dimension is None:
            self._dimension = dimension
        if dimension != self._dimension:
            told = f"vectors of {dimension} numbers, and before of {self._dimension}"
            raise Unavailable(f"the embedder answers with {told}: another model takes a restart of the backend")


def _as_promised(error: Exception) -> Exception:
    """Return the error of the port for what a batch raised."""
    if not isinstance(error, ModelError) or isinstance(error, ModelRequestRejected):
        return error
    return Unavailable(error.message, retry_after_seconds=error.retry_after_seconds)
