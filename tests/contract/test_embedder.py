"""The port `Embedder`: what the fake and the adapter do alike, over a fake server and over a real model."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from math import hypot

import pytest

from backend.embeddings.domain import TextKind, Vector, vector_numbers
from backend.embeddings.ports import Embedder
from deploy.demo.local_embedder import is_installed
from shared.errors import ModelRequestRejected, Unavailable
from tests.fakes.embedding_server import FakeEmbeddingServer, closes
from tests.fakes.embeddings import embedder_of, embedder_options
from tests.fakes.meaning import FakeEmbedder
from tests.servers.embedder import LocalEmbedder

ON_CALL = "A page must be acknowledged within five minutes, and escalates to the next engineer after that."
TRAVEL = "Trains are booked by the travel desk; hotels cost at most ninety euros."
QUESTION = "How soon must a page be acknowledged by an engineer?"
REFUSED = "text that is refused"

Switch = Callable[[], Awaitable[None]]


class Provider:
    """An embedder that can be sent away and called back, whatever is behind it."""

    def __init__(self, embedder: Embedder, leave: Switch, come_back: Switch) -> None:
        self.embedder = embedder
        self.leave = leave
        self.come_back = come_back


@asynccontextmanager
async def fake() -> AsyncGenerator[Provider]:
    embedder = FakeEmbedder(refused=[REFUSED])

    async def leave() -> None:
        embedder.failure = Unavailable("the embedder is away")

    async def come_back() -> None:
        embedder.failure = None

    yield Provider(embedder, leave, come_back)


@asynccontextmanager
async def over_http(*, sends_base64: bool) -> AsyncGenerator[Provider]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FakeEmbeddingServer(sends_base64=sends_base64))
        server.refused = {f"{kind.value}: {REFUSED}" for kind in TextKind}

        async def leave() -> None:
            server.always = closes

        async def come_back() -> None:
            server.always = None

        yield Provider(embedder_of(stack, embedder_options(server.base_url)), leave, come_back)


@asynccontextmanager
async def local(child: LocalEmbedder) -> AsyncGenerator[Provider]:
    async def leave() -> None:
        child.kill()

    async def come_back() -> None:
        child.start()
        await asyncio.to_thread(child.wait_ready)

    options = embedder_options(child.base_url, prefixed=False)
    async with AsyncExitStack() as stack:
        yield Provider(embedder_of(stack, options), leave, come_back)
    if child.exit_code is not None:
        await come_back()


REFUSING = ("fake", "floats", "base64")
ALL = (*REFUSING, "local") if is_installed() else REFUSING


@pytest.fixture(params=ALL)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    if request.param == "local":
        opened = local(request.getfixturevalue("local_embedder"))
    else:
        opened = fake() if request.param == "fake" else over_http(sends_base64=request.param == "base64")
    async with opened as built:
        yield built


def nearness(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(vector_numbers(one), vector_numbers(other), strict=True))


async def test_each_text_has_a_vector_of_length_one(provider: Provider) -> None:
    vectors = await provider.embedder.embed([ON_CALL, TRAVEL], TextKind.PASSAGE)
    model = await provider.embedder.model()
    assert [len(vector_numbers(vector)) for vector in vectors] == [model.dimension] * 2
    assert [hypot(*vector_numbers(vector)) for vector in vectors] == pytest.approx([1.0, 1.0], abs=1e-6)


async def test_the_model_is_known_before_any_text(provider: Provider) -> None:
    before = await provider.embedder.model()
    await provider.embedder.embed([TRAVEL], TextKind.PASSAGE)
    assert await provider.embedder.model() == before


async def test_what_answers_a_question_lies_nearer_to_it(provider: Provider) -> None:
    [question] = await provider.embedder.embed([QUESTION], TextKind.QUERY)
    on_call, travel = await provider.embedder.embed([ON_CALL, TRAVEL], TextKind.PASSAGE)
    assert nearness(question, on_call) > nearness(question, travel)


async def test_the_order_of_many_texts_stays(provider: Provider) -> None:
    texts = [f"{word} stands alone" for word in ("red", "green", "blue", "white", "black", "grey", "brown")]
    alone = [(await provider.embedder.embed([text], TextKind.PASSAGE))[0] for text in texts]
    together = await provider.embedder.embed(texts, TextKind.PASSAGE)
    # Engines may add numbers in another order in a batch: what is equal lies at a cosine of 1.
    assert [max(range(len(texts)), key=lambda n: nearness(vector, alone[n])) for vector in together] == [*range(7)]
    assert [nearness(one, other) for one, other in zip(together, alone, strict=True)] == pytest.approx([1.0] * 7)


async def test_no_texts_have_no_vectors(provider: Provider) -> None:
    assert await provider.embedder.embed([], TextKind.PASSAGE) == ()


async def test_a_provider_that_is_away_is_unavailable_until_it_comes_back(provider: Provider) -> None:
    before = await provider.embedder.embed([TRAVEL], TextKind.PASSAGE)
    await provider.leave()
    for kind in TextKind:
        with pytest.raises(Unavailable) as raised:
            await provider.embedder.embed([TRAVEL], kind)
        assert "127.0.0.1" not in raised.value.message
        assert TRAVEL not in raised.value.message
    await provider.come_back()
    assert await provider.embedder.embed([TRAVEL], TextKind.PASSAGE) == before


@pytest.mark.parametrize("provider", [name for name in ALL if name == "local"], indirect=True)
async def test_calls_end_when_the_local_embedder_is_killed(provider: Provider) -> None:
    async def embed(texts: list[str], kind: TextKind) -> type[Exception] | None:
        try:
            await provider.embedder.embed(texts, kind)
        except Unavailable as error:
            return type(error)
        return None

    async with asyncio.TaskGroup() as group:
        long = group.create_task(embed([f"{ON_CALL} {TRAVEL} {number}" for number in range(200)], TextKind.PASSAGE))
        short = [group.create_task(embed([f"{QUESTION} {number}"], TextKind.QUERY)) for number in range(20)]
        await asyncio.wait(short, return_when=asyncio.FIRST_COMPLETED)
        await provider.leave()
    assert long.result() is Unavailable
    assert {task.result() for task in short} == {None, Unavailable}
    await provider.come_back()
    assert len(await provider.embedder.embed([TRAVEL], TextKind.PASSAGE)) == 1


@pytest.mark.parametrize("provider", REFUSING, indirect=True)
async def test_a_text_that_is_refused_for_good_is_told_from_an_outage(provider: Provider) -> None:
    with pytest.raises(ModelRequestRejected):
        await provider.embedder.embed([TRAVEL, REFUSED, ON_CALL], TextKind.PASSAGE)
    assert len(await provider.embedder.embed([TRAVEL, ON_CALL], TextKind.PASSAGE)) == 2
