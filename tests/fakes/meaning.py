"""An embedder, vectors of questions and a reranker that a test can predict, and let fail."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, ModerationInput, TextKind, Vector, to_vector
from backend.embeddings.ports import Embedder
from shared.errors import BallastError, ModelRequestRejected, Unavailable
from shared.models.values import JsonObject, JsonValue

FAKE_DIMENSION = 512


class FakeModerator:
    """Implements `backend.embeddings.ports.Moderator`: what says "hurt" is violence, and no image is.

    `failure` is raised by every call while it is set. `given` is what was to be judged, in order.
    """

    def __init__(self) -> None:
        self.failure: BallastError | None = None
        self.given: list[ModerationInput] = []

    async def judge(self, given: ModerationInput) -> JsonObject:
        """Return a result for each text, or one for all parts."""
        self.given.append(given)
        if self.failure is not None:
            raise self.failure
        return moderation_of(given)


def moderation_of(given: ModerationInput) -> JsonObject:
    """Return the whole answer of OpenAI's API."""
    each_text = isinstance(given, list) and isinstance(given[0], str)
    results: list[JsonValue] = [_judged("hurt" in str(each)) for each in (given if each_text else [given])]
    return {"id": "modr-1", "model": "fake-moderator", "results": results}


def _judged(is_violent: bool) -> JsonObject:
    """Return one result with all thirteen categories."""
    names = ["harassment", "hate", "illicit", "self-harm", "sexual", "violence"]
    names += ["harassment/threatening", "hate/threatening", "illicit/violent", "self-harm/instructions"]
    names += ["self-harm/intent", "sexual/minors", "violence/graphic"]
    flags = {name: is_violent and name == "violence" for name in names}
    return {
        "flagged": is_violent,
        "categories": {**flags},
        "category_scores": {name: 0.9 if flag else 0.01 for name, flag in flags.items()},
        "category_applied_input_types": {name: ["text"] for name in names},
    }


class FakeEmbedder:
    """Implements `backend.embeddings.ports.Embedder` over the words and pairs of characters of texts.

    Texts that share words lie near to each other. `synonyms` gives words that mean the same as another one, in
    whatever language: {"报销": "reimbursement"}. `failure` is raised by every call while it is set, and `refused`
    are texts that are refused for good. While there is an event in `held`, calls wait until it is set; `called` is
    set by each call.
    """

    def __init__(
        self,
        *,
        name: str = "fake-embedder",
        dimension: int = FAKE_DIMENSION,
        synonyms: Mapping[str, str] | None = None,
        refused: Sequence[str] = (),
    ) -> None:
        self.failure: BallastError | None = None
        self.held: asyncio.Event | None = None
        self.called = asyncio.Event()
        self.calls: list[tuple[tuple[str, ...], TextKind]] = []
        self.refused = set(refused)
        self._model = EmbeddingModel(name=name, dimension=dimension)
        self._synonyms = dict(synonyms or {})

    @property
    def texts(self) -> list[str]:
        """All texts so far, in the order in which they came."""
        return [text for texts, _ in self.calls for text in texts]

    async def model(self) -> EmbeddingModel:
        """Return what makes the vectors."""
        if self.failure is not None:
            raise self.failure
        return self._model

    async def prepare(self) -> None:
        """Do nothing: the first text needs no more than the others."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text."""
        self.calls.append((tuple(texts), kind))
        self.called.set()
        if self.held is not None:
            await self.held.wait()
        if self.failure is not None:
            raise self.failure
        if self.refused.intersection(texts):
            raise ModelRequestRejected("the embedder rejected the request (status 400)")
        return tuple(self._vector(text) for text in texts)

    def _vector(self, text: str) -> Vector:
        numbers = [0.0] * self._model.dimension
        numbers[0] = 0.01  # no text is without a direction
        for feature in self._features(text):
            numbers[int.from_bytes(sha256(feature.encode()).digest()[:4]) % len(numbers)] += 1.0
        return to_vector(numbers)

    def _features(self, text: str) -> list[str]:
        text = text.lower()
        for word, meaning in self._synonyms.items():
            text = text.replace(word.lower(), f" {meaning.lower()} ")
        words = text.split()
        return [*words, *("".join(pair) for word in words if not word.isascii() for pair in pairwise(word))]


class FakeQuestions:
    """Implements `backend.embeddings.ports.QuestionEmbedding` over an embedder; None while that one fails."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def vector_of(self, query: str, asked_of: Collection[str] = ()) -> EmbeddedQuery | None:
        """Return the vector of a question."""
        try:
            [vector] = await self._embedder.embed([query], TextKind.QUERY)
            return EmbeddedQuery(await self._embedder.model(), vector)
        except (Unavailable, ModelRequestRejected):
            return None


class FakeReranker:
    """Implements `Reranker`: texts score by what a test gives, others 0; None while `is_away`."""

    def __init__(self, scores: Mapping[str, float] | None = None) -> None:
        self.known = dict(scores or {})
        self.is_away = False
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    async def scores(self, query: str, texts: Sequence[str]) -> tuple[float, ...] | None:
        """Return a score for each text."""
        self.calls.append((query, tuple(texts)))
        return None if self.is_away else tuple(self.known.get(text, 0.0) for text in texts)
