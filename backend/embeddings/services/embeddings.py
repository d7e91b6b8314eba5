"""Vectors for callers who want them for something of their own."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from backend.embeddings.domain import TextKind, Vector
from backend.embeddings.ports import Embedder
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from shared.errors import DeadlineExceeded, InvalidRequest, NotFound, UnknownModel
from shared.tokens import estimate_tokens

MAX_INPUTS = 512
"""Fewer than OpenAI's 2,048, because the answer to those would hold the event loop."""

MAX_INPUT_CHARACTERS = 32_768
"""Of one text: about OpenAI's 8,192 tokens."""

MAX_ALL_CHARACTERS = 1_048_576
TIMEOUT_SECONDS = 120.0


class EmbeddedTexts(NamedTuple):
    """The vectors of texts, in order, with an estimate of their tokens."""

    model: str
    vectors: tuple[Vector, ...]
    tokens: int


class Embeddings:
    """Makes vectors of callers' texts with the operator's embedder, whose name is `model`; None where there is none."""

    def __init__(self, embedder: Embedder | None, model: str, admission: Admission) -> None:
        self._embedder = embedder
        self._model = model
        self._admission = admission

    async def embed(self, caller: Caller, model: str, texts: Sequence[str], dimensions: int | None) -> EmbeddedTexts:
        """Return a vector for each text, as passages are embedded; the request takes the place of a turn.

        Raises:
            NotFound: there is no embedder.
            UnknownModel: the embedder has another name.
            InvalidRequest: a text is empty, there are too many or too long ones, or the dimension is another one.
            Unavailable: the embedder is away, or this process takes nothing new. Retryable.
            TooManyRequests: the caller holds as much as one caller may. Retryable.
            ModelRequestRejected: the embedder refuses the texts.
            DeadlineExceeded: it takes too long. Retryable.
        """
        embedder = self._check(model)
        check_texts(texts)
        self._admission.check_open()
        with self._admission.place(*holders_of(caller)):
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await _check_dimension(embedder, dimensions)
                    vectors = await embedder.embed(texts, TextKind.PASSAGE)
            except TimeoutError:
                raise DeadlineExceeded("The embedder takes too long for so many texts; send fewer.") from None
        return EmbeddedTexts(self._model, vectors, sum(map(estimate_tokens, texts)))

    def _check(self, model: str) -> Embedder:
        if self._embedder is None:
            told = "its operator sets one with BACKEND_EMBEDDING_BASE_URL and BACKEND_EMBEDDING_MODEL"
            raise NotFound(f"This server makes no embeddings: {told}.")
        if model != self._model:
            raise UnknownModel(f"There is no embedding model '{model}'; use '{self._model}'.", param="model")
        return self._embedder


def check_texts(texts: Sequence[str]) -> None:
    """Check the texts of one request.

    Raises:
        InvalidRequest: one is empty, or there are too many or too long ones.
    """
    if not 1 <= len(texts) <= MAX_INPUTS:
        raise InvalidRequest(f"must hold 1 to {MAX_INPUTS} texts, not {len(texts)}.", param="input")
    for place, text in enumerate(texts):
        if not 1 <= len(text) <= MAX_INPUT_CHARACTERS:
            told = f"must have 1 to {MAX_INPUT_CHARACTERS} characters, not {len(text)}."
            raise InvalidRequest(told, param=f"input[{place}]")
    if (characters := sum(map(len, texts))) > MAX_ALL_CHARACTERS:
        told = f"must have no more than {MAX_ALL_CHARACTERS} characters together, not {characters}."
        raise InvalidRequest(told, param="input")


async def _check_dimension(embedder: Embedder, dimensions: int | None) -> None:
    if dimensions is not None and dimensions != (own := (await embedder.model()).dimension):
        raise InvalidRequest(f"must be {own}, or left out: the model has no other.", param="dimensions")
