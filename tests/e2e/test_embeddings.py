"""`POST /v1/embeddings` as OpenAI's client calls it, with the embedder of the wheel behind the real backend."""

from pathlib import Path

import pytest
from openai import BadRequestError, InternalServerError, NotFoundError, OpenAI

from deploy.demo.local_embedder import MODEL, embedder_settings
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.servers.embedder import LocalEmbedder
from tests.servers.services import Launch

pytestmark = pytest.mark.combination


@pytest.fixture
def pair(launch: Launch, tmp_path: Path, local_embedder: LocalEmbedder) -> Pair:
    return start_pair(launch, tmp_path, PairOptions(backend=embedder_settings(local_embedder.port)))


def test_the_official_client_gets_vectors(pair: Pair, local_embedder: LocalEmbedder) -> None:
    with pair.client() as client:
        question, answer, other = numbers_of(client, "How are travel costs paid back?", "差旅费的报销", "The canteen")
        assert len(question) == 384
        assert dot(question, answer) > dot(question, other)
        as_floats = client.embeddings.create(model=MODEL, input="The canteen", encoding_format="float")
        assert as_floats.data[0].embedding == pytest.approx(other, abs=1e-6)
        assert as_floats.usage.total_tokens > 0
        refusals(client)
        outage(client, local_embedder)


def refusals(client: OpenAI) -> None:
    with pytest.raises(NotFoundError, match=MODEL):
        client.embeddings.create(model="text-embedding-3-small", input="x")
    with pytest.raises(BadRequestError, match="tokens"):
        client.embeddings.create(model=MODEL, input=[1, 2, 3])
    with pytest.raises(BadRequestError, match="384"):
        client.embeddings.create(model=MODEL, input="x", dimensions=8)


def outage(client: OpenAI, local_embedder: LocalEmbedder) -> None:
    """Kill the embedder: its callers are told, and get vectors again once it is back."""
    local_embedder.kill()
    try:
        with pytest.raises(InternalServerError) as raised:
            client.embeddings.create(model=MODEL, input="x")
        assert raised.value.status_code == 503
    finally:
        local_embedder.start()
        local_embedder.wait_ready()
    assert len(numbers_of(client, "x")[0]) == 384


def numbers_of(client: OpenAI, *texts: str) -> list[list[float]]:
    return [each.embedding for each in client.embeddings.create(model=MODEL, input=list(texts)).data]


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
