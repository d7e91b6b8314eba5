"""The provider of moderations: what it is sent, and that nothing is believed of it before it is checked."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from backend.embeddings.domain import ModerationInput, ProviderAddress, ProviderModel
from backend.embeddings.services.moderations import Moderations
from backend.identity.domain import Caller, KeyRole
from shared.errors import BallastError, ModelRequestRejected, Unavailable
from shared.models.values import JsonObject
from tests.fakes.embedding_server import FakeEmbeddingServer, Fault, breaks_off, closes, floods, hangs, says
from tests.fakes.embeddings import embeddings_over
from tests.fakes.meaning import moderation_of

ADA = Caller(user_id="ada", tenant="default", role=KeyRole.USER)


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbeddingServer]:
    async with FakeEmbeddingServer() as started:
        yield started


async def judged(server: FakeEmbeddingServer, given: ModerationInput, timeout_seconds: float = 20) -> JsonObject:
    address = ProviderAddress("the moderation model", server.base_url, "key-of-the-moderator")
    async with AsyncExitStack() as stack:
        embeddings = embeddings_over(stack, moderation=ProviderModel(address, "moderator", timeout_seconds))
        (moderations,) = [each for each in embeddings.part.services if isinstance(each, Moderations)]
        return await moderations.judge(ADA, None, given)


@pytest.mark.parametrize("given", ["hurt", ["hurt", "good"], [{"type": "text", "text": "hurt"}]])
async def test_the_answer_is_the_providers(server: FakeEmbeddingServer, given: ModerationInput) -> None:
    assert await judged(server, given) == moderation_of(given)
    assert server.bodies == [{"model": "moderator", "input": given}]
    assert server.headers[0]["Authorization"] == "Bearer key-of-the-moderator"


RESULT: dict[str, Any] = {"flagged": True, "categories": {}, "category_scores": {}}


GARBAGE: list[Any] = [
    b"<html>",
    [],
    {},
    {"id": "m", "model": "m", "results": []},
    {"id": "m", "model": "m", "results": [RESULT, RESULT]},
    {"id": "m", "model": "m", "results": [RESULT | {"flagged": 1}]},
    {"id": "m", "model": "m", "results": [RESULT | {"categories": None}]},
    {"id": None, "model": "m", "results": [RESULT]},
    {"id": "m", "model": "m", "results": [RESULT | {"categories": {str(n): True for n in range(600)}}]},
]


@pytest.mark.parametrize("content", GARBAGE)
async def test_garbage_is_unavailable(server: FakeEmbeddingServer, content: Any) -> None:
    server.always = says(content)
    with pytest.raises(Unavailable):
        await judged(server, "hurt")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (closes, Unavailable),
        (breaks_off, Unavailable),
        (floods, Unavailable),
        (says({}, 401), Unavailable),
        (says({}, 500), Unavailable),
        (says({"error": {"message": "hurt"}}, 400), ModelRequestRejected),
    ],
)
async def test_a_failure_says_nothing_of_the_input(
    server: FakeEmbeddingServer, fault: Fault, error: type[BallastError]
) -> None:
    server.always = fault
    with pytest.raises(error) as raised:
        await judged(server, "hurt")
    assert "hurt" not in raised.value.message


async def test_a_silent_provider_costs_its_time_and_is_cut_off(server: FakeEmbeddingServer) -> None:
    server.always = hangs
    with pytest.raises(Unavailable, match="in time"):
        await judged(server, "hurt", timeout_seconds=0.2)
    await server.cut.wait()
