"""A provider of embeddings that does all that it must not: each fault has its error, and nothing is held."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from struct import pack
from typing import Any

import pytest

from backend.embeddings.domain import TextKind
from backend.embeddings.ports import Embedder
from shared.errors import ModelRequestRejected, Unavailable
from tests.fakes.embedding_server import FakeEmbeddingServer, Fault, breaks_off, closes, floods, hangs, says
from tests.fakes.embeddings import embedder_of, embedder_options


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbeddingServer]:
    async with FakeEmbeddingServer() as started:
        yield started


@pytest.fixture
async def embedder(server: FakeEmbeddingServer) -> AsyncIterator[Embedder]:
    async with AsyncExitStack() as stack:
        yield embedder_of(stack, embedder_options(server.base_url))


def answer(*embeddings: Any, indexes: list[Any] | None = None) -> dict[str, Any]:
    places = indexes if indexes is not None else list(range(len(embeddings)))
    return {"data": [{"index": n, "embedding": each} for n, each in zip(places, embeddings, strict=True)]}


def floats(*numbers: float) -> str:
    return b64encode(pack(f"<{len(numbers)}f", *numbers)).decode()


GARBAGE: dict[str, Any] = {
    "no JSON": b"<html>",
    "half of a JSON": b'{"data": [{"index": 0',
    "bytes of no text": b"\x1f\x8b\x08\x00\xff\xfe",
    "nothing": b"",
    "a list": [1, 2],
    "null": None,
    "no list of vectors": {"data": {"index": 0}},
    "a deep nest": b"[" * 100_000,
    "many values": b"[" + b"0," * 300_000 + b"0]",
    "too few": answer([1.0, 0.0]),
    "too many": answer([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]),
    "two of one index": answer([1.0, 0.0], [1.0, 0.0], indexes=[0, 0]),
    "a negative index": answer([1.0, 0.0], [1.0, 0.0], indexes=[0, -1]),
    "an index beyond the texts": answer([1.0, 0.0], [1.0, 0.0], indexes=[0, 2]),
    "an index that is no number": answer([1.0, 0.0], [1.0, 0.0], indexes=[0, "1"]),
    "an index that is a truth": answer([1.0, 0.0], [1.0, 0.0], indexes=[0, True]),
    "several dimensions": answer([1.0, 0.0], [1.0, 0.0, 0.0]),
    "no numbers": answer([], []),
    "zeros": answer([1.0, 0.0], [0.0, 0.0]),
    "truths": answer([1.0, 0.0], [True, False]),
    "texts": answer([1.0, 0.0], ["1.0", "0.0"]),
    "a number beyond all": b'{"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1.0]}]}',
    "squares beyond all": answer([1.7e308, 1.7e308], [1.7e308, 1.7e308]),
    "no number in base64": answer(floats(1.0, 0.0), floats(float("nan"), 0.0)),
    "the infinite in base64": answer(floats(1.0, 0.0), floats(float("inf"), 0.0)),
    "no base64": answer("*", "*"),
    "half a float": answer("AAAA", "AAAA"),
    "no vector at all": answer(None, None),
    "more numbers than any model has": answer([0.5] * 8_193, [0.5] * 8_193),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_is_unavailable_and_the_next_answer_counts(
    server: FakeEmbeddingServer, embedder: Embedder, content: Any
) -> None:
    server.always = says(content)
    with pytest.raises(Unavailable):
        await embedder.embed(["one", "two"], TextKind.PASSAGE)
    assert len(server.bodies) == 1, "garbage is not asked for again"
    server.always = None
    assert len(await embedder.embed(["one", "two"], TextKind.PASSAGE)) == 2


@pytest.mark.parametrize("fault", [closes, says({}, 500), says({}, 503), says({}, 429)])
async def test_what_passes_is_tried_again(server: FakeEmbeddingServer, embedder: Embedder, fault: Fault) -> None:
    server.faults.append(fault)
    assert len(await embedder.embed(["one"], TextKind.PASSAGE)) == 1
    assert len(server.bodies) == 2
    assert server.bodies[0] == server.bodies[1]


async def test_an_answer_that_breaks_off_is_no_answer(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    server.always = breaks_off
    with pytest.raises(Unavailable):
        await embedder.embed(["one"], TextKind.PASSAGE)


async def test_a_provider_that_asks_for_a_long_pause_is_left_alone(
    server: FakeEmbeddingServer, embedder: Embedder
) -> None:
    server.always = says({}, 429, retry_after="60")
    with pytest.raises(Unavailable) as raised:
        await embedder.embed(["one"], TextKind.PASSAGE)
    assert raised.value.retry_after_seconds == 60
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "word"), [(401, "credential"), (403, "credential"), (402, "quota"), (404, "model"), (302, "else")]
)
async def test_what_the_operator_must_mend_is_named(
    server: FakeEmbeddingServer, embedder: Embedder, status: int, word: str
) -> None:
    server.always = says({"error": {"message": "secret of the provider"}}, status)
    with pytest.raises(Unavailable, match=word) as raised:
        await embedder.embed(["one"], TextKind.PASSAGE)
    assert "secret" not in raised.value.message


async def test_a_provider_that_refuses_everything_refuses_no_text(
    server: FakeEmbeddingServer, embedder: Embedder
) -> None:
    server.always = says({"error": {"message": "no such model"}}, 400)
    with pytest.raises(Unavailable, match="BACKEND_EMBEDDING_MODEL"):
        await embedder.embed(["one", "two", "three"], TextKind.PASSAGE)


async def test_a_batch_that_is_too_large_for_the_provider_is_split() -> None:
    async with FakeEmbeddingServer(max_texts=2) as server, AsyncExitStack() as stack:
        embedder = embedder_of(stack, embedder_options(server.base_url, batch_texts=16))
        texts = [f"text {number}" for number in range(10)]
        vectors = await embedder.embed(texts, TextKind.PASSAGE)
        assert list(vectors) == [(await embedder.embed([text], TextKind.PASSAGE))[0] for text in texts]


async def test_a_text_without_unicode_is_refused(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    with pytest.raises(ModelRequestRejected):
        await embedder.embed(["half a pair: \ud800"], TextKind.PASSAGE)


async def test_a_silent_provider_costs_its_time_and_is_cut_off(server: FakeEmbeddingServer) -> None:
    server.always = hangs
    async with AsyncExitStack() as stack:
        embedder = embedder_of(stack, embedder_options(server.base_url, timeout_seconds=0.2))
        with pytest.raises(Unavailable, match="in time"):
            await embedder.embed(["one"], TextKind.PASSAGE)
        await server.cut.wait()


async def test_an_answer_without_an_end_is_cut_off(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    server.always = floods
    with pytest.raises(Unavailable, match="bytes"):
        await embedder.embed(["one"], TextKind.PASSAGE)
    await server.cut.wait()


async def test_another_dimension_is_another_model(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    known = await embedder.model()
    server.always = says(answer([1.0, 0.0]))
    with pytest.raises(Unavailable, match="restart"):
        await embedder.embed(["one"], TextKind.PASSAGE)
    assert await embedder.model() == known


async def test_a_cancelled_call_leaves_the_provider(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    server.always = hangs
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await embedder.embed([str(number) for number in range(20)], TextKind.PASSAGE)
    await server.cut.wait()
    server.always = None
    assert len(await embedder.embed(["one"], TextKind.PASSAGE)) == 1


async def test_batches_and_calls_are_bounded_and_each_kind_has_its_form(server: FakeEmbeddingServer) -> None:
    async with AsyncExitStack() as stack:
        embedder = embedder_of(stack, embedder_options(server.base_url, batch_texts=3, concurrency=2))
        await embedder.embed([f"text {number}" for number in range(20)], TextKind.PASSAGE)
        assert max(len(body["input"]) for body in server.bodies) == 3
        assert server.most_at_once == 2
        await embedder.embed(["why"], TextKind.QUERY)
    passage, query = server.bodies[0], server.bodies[-1]
    assert (passage["input"][0], passage["input_type"]) == ("passage: text 0", "passage")
    assert (query["input"], query["input_type"], query["model"]) == (["query: why"], "query", "small")
    assert server.headers[0]["Authorization"] == "Bearer key-of-the-embedder"


async def test_long_texts_go_in_small_batches(server: FakeEmbeddingServer, embedder: Embedder) -> None:
    await embedder.embed(["long " * 8_000] * 3, TextKind.PASSAGE)
    assert [len(body["input"]) for body in server.bodies] == [1, 1, 1]
