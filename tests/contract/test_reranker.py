"""The port `Reranker`: the fake, and the adapter over servers that speak as vLLM, Jina, Cohere and TEI do."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from backend.embeddings.domain import ProviderAddress, RerankerOptions
from backend.embeddings.ports import Reranker
from tests.fakes.embedding_server import FakeEmbeddingServer, breaks_off, closes, floods, hangs, says
from tests.fakes.embeddings import embeddings_over
from tests.fakes.meaning import FakeReranker

TRAVEL, ON_CALL, FOOD = "trains and hotels", "a page must be acknowledged", "the canteen"
TEXTS = [TRAVEL, ON_CALL, FOOD]


class Scorer:
    """A reranker that can be sent away."""

    def __init__(self, reranker: Reranker, server: FakeEmbeddingServer | None) -> None:
        self.reranker = reranker
        self._server = server

    def leave(self) -> None:
        if self._server is not None:
            self._server.always = closes
        elif isinstance(self.reranker, FakeReranker):
            self.reranker.is_away = True


def reranker_over(stack: AsyncExitStack, server: FakeEmbeddingServer, deadline_seconds: float = 20) -> Reranker:
    address = ProviderAddress("the reranker", server.base_url, "key-of-the-reranker")
    return embeddings_over(stack, None, RerankerOptions(address, "scorer", deadline_seconds)).ports.reranker


@pytest.fixture(params=["fake", "documents", "texts"])
async def scorer(request: pytest.FixtureRequest) -> AsyncIterator[Scorer]:
    if request.param == "fake":
        yield Scorer(FakeReranker({TRAVEL: 0.1, ON_CALL: 0.3}), None)
        return
    async with FakeEmbeddingServer(is_tei=request.param == "texts") as server, AsyncExitStack() as stack:
        yield Scorer(reranker_over(stack, server), server)


async def test_each_text_has_a_score_in_the_order_of_the_texts(scorer: Scorer) -> None:
    scores = await scorer.reranker.scores("must page acknowledged", TEXTS)
    assert scores is not None
    assert scores[1] == max(scores)
    assert (len(scores), scores[2]) == (3, 0.0)


async def test_no_texts_have_no_scores(scorer: Scorer) -> None:
    assert await scorer.reranker.scores("why", []) == ()


async def test_a_reranker_that_is_away_leaves_the_order_as_it_is(scorer: Scorer) -> None:
    scorer.leave()
    assert await scorer.reranker.scores("why", TEXTS) is None


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbeddingServer]:
    async with FakeEmbeddingServer() as started:
        yield started


def results(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}


GARBAGE: list[Any] = [
    b"<html>",
    b"",
    b"1" * 1_000_000,
    {},
    {"results": None},
    results((0, 1.0), (1, 1.0)),
    results((0, 1.0), (0, 1.0), (1, 1.0)),
    results((0, 1.0), (1, 1.0), (3, 1.0)),
    results((0, 1.0), (1, 1.0), (2, "1.0")),
    results((0, 1.0), (1, 1.0), (2, True)),
    results((0, 1.0), (1, 1.0), (2, None)),
    results((0, 1.0), (1, 1.0), (2, 1.0), (2, 1.0)),
    results((0, 1.0), (1, 1.0), ({}, 1.0)),
    results((0, 1.0), (True, 1.0), (2, 1.0)),
    b'{"results": [{"index": 0, "relevance_score": 1e999}, {"index": 1, "relevance_score": 1}]}',
]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_leaves_the_order_as_it_is(server: FakeEmbeddingServer, content: Any) -> None:
    async with AsyncExitStack() as stack:
        reranker = reranker_over(stack, server)
        server.always = says(content)
        assert await reranker.scores("why", TEXTS) is None
        server.always = None
        assert await reranker.scores("why", TEXTS) is not None


@pytest.mark.parametrize("fault", [floods, breaks_off, says({}, 500), says({}, 400), says({}, 401), says({}, 429)])
async def test_no_fault_reaches_a_search(server: FakeEmbeddingServer, fault: Any) -> None:
    async with AsyncExitStack() as stack:
        reranker = reranker_over(stack, server)
        server.always = fault
        assert await reranker.scores("why", TEXTS) is None


async def test_a_silent_reranker_is_cut_off(server: FakeEmbeddingServer) -> None:
    async with AsyncExitStack() as stack:
        server.always = hangs
        assert await reranker_over(stack, server, deadline_seconds=0.2).scores("why", TEXTS) is None
        await server.cut.wait()


async def test_what_is_sent_is_bounded(server: FakeEmbeddingServer) -> None:
    async with AsyncExitStack() as stack:
        await reranker_over(stack, server).scores("why " * 10_000, ["long " * 10_000])
    [body] = server.bodies
    assert (len(body["query"]), [len(text) for text in body["documents"]]) == (4_000, [8_000])
    assert (body["model"], body["top_n"]) == ("scorer", 1)
    assert server.headers[0]["Authorization"] == "Bearer key-of-the-reranker"
