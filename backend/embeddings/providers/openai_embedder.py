"""An embedder behind OpenAI's `POST /embeddings`, which vLLM, TEI, Ollama, Infinity and others speak as well."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.embeddings.domain import BatchBounds, ConfiguredEmbedder, EmbeddingModel, TextKind, Vector, text_batches
from backend.embeddings.providers.embedding_answers import MAX_DIMENSION, vectors_in
from backend.embeddings.providers.json_calls import AnswerBounds, JsonCalls
from backend.foundation.services.steps import run_cooperatively
from shared.errors import ModelError, ModelProtocolViolated, ModelRequestRejected, Unavailable
from shared.models.values import JsonObject
from shared.retries import RetryPolicy

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
        of_kind, retries = self._places[kind], 0
        async with of_kind.places:
            while True:
                try:
                    return await self._post(texts, kind)
                except ModelError as error:
                    wait_seconds = of_kind.retry.wait_seconds(error, retries)
                    if wait_seconds is None:
                        raise
                await of_kind.retry.sleep(wait_seconds)
                retries += 1

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
