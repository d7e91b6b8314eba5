"""The services of search by meaning, built from the providers that the operator has set up."""

import random
import time
from asyncio import Semaphore
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.embeddings.domain import (
    BatchBounds,
    EmbedderOptions,
    ProviderAddress,
    ProviderModel,
    RerankerOptions,
    TextKind,
)
from backend.embeddings.ports import CallObserver, Embedder, MeaningPorts, Moderator, QuestionEmbedding, Reranker
from backend.embeddings.services.centred_embedder import CentredEmbedder
from backend.embeddings.services.embeddings import Embeddings
from backend.embeddings.services.moderations import Moderations
from backend.embeddings.services.question_vectors import NO_MEANING, QuestionVectors
from backend.embeddings.services.timely_calls import Breaker, TimelyCalls, TimelyReranker
from backend.embeddings.telemetry.observer import QUESTION_OBSERVER, RERANKING_OBSERVER
from backend.foundation.services.admission import Admission
from backend.foundation.services.parts import Part
from shared.clock import Clock
from shared.retries import RetryPolicy

if TYPE_CHECKING:
    from backend.embeddings.providers.json_calls import JsonCalls
    from backend.embeddings.providers.openai_vision import OpenAIVisionModel

MAX_BATCH_CHARACTERS = 65_536
"""Of several texts in one call: far below the 300,000 tokens that OpenAI takes in one."""

QUERY_CALLS = 8
"""Calls for questions at a time: searches do not wait for the passages that are embedded meanwhile."""

RETRIES_IN_SEARCH = RetryPolicy(random.random, max_retries=1, first_wait_seconds=0.02, longest_wait_seconds=0.1)
"""One that finds a connection closed, or a server that starts again; there is no time for more."""


@dataclass(frozen=True)
class EmbeddingPackage:
    """What the package adds to the process, and what the packages above search with."""

    part: Part
    ports: MeaningPorts


def build_embeddings(
    embedder: EmbedderOptions | None,
    reranker: RerankerOptions | None,
    moderation: ProviderModel | None,
    admission: Admission,
    clock: Clock,
    stack: AsyncExitStack,
) -> EmbeddingPackage:
    """Build the package inside the event loop that will use it; connections are closed with the stack."""
    built = provider_of(embedder, clock, stack) if embedder is not None else None
    centred = CentredEmbedder(built) if built is not None else None
    questions: QuestionEmbedding = NO_MEANING.questions
    if embedder is not None and centred is not None:
        calls = _timely(QUESTION_OBSERVER, embedder.deadline_seconds)
        questions = QuestionVectors(centred, calls, QUESTION_OBSERVER)
    ports = MeaningPorts(centred, questions, _reranker(reranker, clock, stack))
    embeddings = Embeddings(built, embedder.configured.model if embedder else "", admission)
    moderator = _moderator(moderation, clock, stack) if moderation is not None else None
    moderations = Moderations(moderator, moderation.model if moderation else "", admission)
    return EmbeddingPackage(Part((embeddings, moderations)), ports)


def provider_of(options: EmbedderOptions, clock: Clock, stack: AsyncExitStack) -> Embedder:
    """Build what asks the operator's embedder, and gives its vectors as they come."""
    from backend.embeddings.providers.openai_embedder import EMBEDDINGS_PATH, CallPlaces, OpenAIEmbedder

    calls = _calls(options.address, EMBEDDINGS_PATH, options.timeout_seconds, clock, stack)
    places = {
        TextKind.QUERY: CallPlaces(Semaphore(QUERY_CALLS), RETRIES_IN_SEARCH),
        TextKind.PASSAGE: CallPlaces(Semaphore(options.concurrency), RetryPolicy(random.random)),
    }
    return OpenAIEmbedder(calls, options.configured, BatchBounds(options.batch_texts, MAX_BATCH_CHARACTERS), places)


def vision_model_of(options: ProviderModel, clock: Clock, stack: AsyncExitStack) -> "OpenAIVisionModel":
    """Build what asks the operator's vision model for the text of pictures."""
    from backend.embeddings.providers.openai_vision import COMPLETIONS_PATH, OpenAIVisionModel

    calls = _calls(options.address, COMPLETIONS_PATH, options.timeout_seconds, clock, stack)
    return OpenAIVisionModel(calls, options.model, RetryPolicy(random.random))


def _reranker(options: RerankerOptions | None, clock: Clock, stack: AsyncExitStack) -> Reranker:
    if options is None:
        return NO_MEANING.reranker
    from backend.embeddings.providers.http_reranker import RERANK_PATH, HttpReranker

    calls = _calls(options.address, RERANK_PATH, options.deadline_seconds, clock, stack)
    timely = _timely(RERANKING_OBSERVER, options.deadline_seconds)
    return TimelyReranker(HttpReranker(calls, options.model), timely, RERANKING_OBSERVER)


def _moderator(options: ProviderModel, clock: Clock, stack: AsyncExitStack) -> Moderator:
    from backend.embeddings.providers.openai_moderator import MODERATIONS_PATH, OpenAIModerator

    calls = _calls(options.address, MODERATIONS_PATH, options.timeout_seconds, clock, stack)
    return OpenAIModerator(calls, options.model)


def _calls(
    address: ProviderAddress, path: str, timeout_seconds: float, clock: Clock, stack: AsyncExitStack
) -> "JsonCalls":
    from backend.embeddings.providers.json_calls import JsonCalls, open_provider_session

    session = open_provider_session()
    stack.push_async_callback(session.close)
    return JsonCalls(address, path, session, clock, timeout_seconds=timeout_seconds)


def _timely(observer: CallObserver, deadline_seconds: float) -> TimelyCalls:
    return TimelyCalls(deadline_seconds, Breaker(observer, time.monotonic))
