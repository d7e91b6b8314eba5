"""The ports of search by meaning: what makes vectors of texts, and what reorders texts by how well they answer."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from backend.embeddings.domain import CallOutcome, EmbeddedQuery, EmbeddingModel, ModerationInput, TextKind, Vector
from shared.errors import BallastError
from shared.models.values import JsonObject


class Embedder(Protocol):
    """A model that makes vectors of texts."""

    async def model(self) -> EmbeddingModel:
        """Return what the vectors are made by; the first call may ask the provider for the dimension.

        Raises:
            Unavailable: the provider is away. Retryable.
        """
        ...

    async def prepare(self) -> None:
        """Do once what must be done before questions get vectors; later calls do nothing.

        Raises:
            Unavailable: the provider is away. Retryable.
            ModelRequestRejected: the provider refuses even texts of ours.
        """
        ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        """Return a vector for each text, in order; texts that are too long for the model are cut by it.

        Raises:
            Unavailable: the provider is away, overloaded or slow. Retryable.
            ModelRequestRejected: the provider refuses these texts, and will refuse them again.
        """
        ...


class QuestionEmbedding(Protocol):
    """Vectors of questions, in time for their searches."""

    async def vector_of(self, query: str, asked_of: Collection[str]) -> EmbeddedQuery | None:
        """Return the vector of a question; None where there is no embedder, or it is away or too slow.

        What is remembered of it serves no question to others than these bases: how long an answer takes tells nobody
        what is asked of bases that they may not search.

        It never raises for a failure of the provider, and takes no longer than the deadline of a search.
        """
        ...


class ScoringModel(Protocol):
    """A model that says how well texts answer a question, however long it takes."""

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Return a score for each text, in order, greater for the better one.

        Raises:
            Unavailable: the provider is away, overloaded or slow. Retryable.
            ModelRequestRejected: the provider refuses these texts, and will refuse them again.
        """
        ...


class Reranker(Protocol):
    """A model that reads a question and texts, and says how well each text answers the question."""

    async def scores(self, query: str, texts: Sequence[str]) -> tuple[float, ...] | None:
        """Return a score for each text, in order, greater for the better one.

        None where there is no reranker, or it is away or too slow; it never raises for a failure of the provider.
        """
        ...


class Moderator(Protocol):
    """A model that says whether texts and images are harmful."""

    async def judge(self, given: ModerationInput) -> JsonObject:
        """Return what it says in OpenAI's form, with a result for each text, or one for all parts.

        Raises:
            Unavailable: the provider is away, overloaded or slow. Retryable.
            ModelRequestRejected: the provider refuses this input, and will refuse it again.
        """
        ...


class CallObserver(Protocol):
    """Receives what becomes of calls for searches; its methods must not raise and must not block."""

    def note_end(self, outcome: CallOutcome) -> None:
        """A search has got what it wanted, or goes on without it."""
        ...

    def went_away(self, error: BallastError | None) -> None:
        """The provider has failed so often that it is left alone for a while; without an error it was too slow."""
        ...

    def came_back(self) -> None:
        """A provider that had been left alone answers again."""
        ...


class MeaningPorts(NamedTuple):
    """What the operator has set up for search by meaning; where something is missing, its port always returns None."""

    embedder: Embedder | None
    questions: QuestionEmbedding
    reranker: Reranker
