"""`POST /v1/embeddings`: who gets what, and what is refused."""

import asyncio
from base64 import b64decode

import httpx2
import pytest
from fastapi import FastAPI

from backend.embeddings.domain import TextKind, vector_numbers
from backend.embeddings.services.embeddings import MAX_ALL_CHARACTERS, MAX_INPUT_CHARACTERS, MAX_INPUTS, Embeddings
from shared.errors import BallastError, InvalidRequest, ModelRequestRejected, Unavailable
from tests.fakes.http_api import EMBEDDING_MODEL, FakeHouse
from tests.fakes.meaning import FAKE_DIMENSION, FakeEmbedder

PATH = "/v1/embeddings"
ASKED: dict[str, object] = {"model": EMBEDDING_MODEL, "input": "trains"}


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse(embedder=FakeEmbedder())


@pytest.fixture
def embedder(house: FakeHouse) -> FakeEmbedder:
    assert house.embedder is not None
    return house.embedder


def error_of(answer: httpx2.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def test_each_text_has_its_vector(user: httpx2.AsyncClient, embedder: FakeEmbedder) -> None:
    texts = ["trains", "差旅费"]
    vectors = await embedder.embed(texts, TextKind.PASSAGE)
    answer = await user.post(PATH, json=ASKED | {"input": texts, "user": "ada", "dimensions": FAKE_DIMENSION})
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert [(each["object"], each["index"]) for each in shown["data"]] == [("embedding", 0), ("embedding", 1)]
    assert [each["embedding"] for each in shown["data"]] == [vector_numbers(vector).tolist() for vector in vectors]
    assert (shown["object"], shown["model"]) == ("list", EMBEDDING_MODEL)
    assert shown["usage"] == {"prompt_tokens": 5, "total_tokens": 5}
    assert embedder.calls[-1] == (tuple(texts), TextKind.PASSAGE)


async def test_base64_holds_the_same_numbers(user: httpx2.AsyncClient, embedder: FakeEmbedder) -> None:
    [vector] = await embedder.embed(["trains"], TextKind.PASSAGE)
    answer = await user.post(PATH, json=ASKED | {"encoding_format": "base64"})
    [shown] = answer.json()["data"]
    assert b64decode(shown["embedding"]) == vector


@pytest.mark.parametrize(
    ("changed", "param", "told"),
    [
        ({"input": [1, 2, 3]}, "input", "tokens are not supported"),
        ({"input": [[1, 2], [3]]}, "input", "tokens are not supported"),
        ({"input": []}, "input", "1 to 512"),
        ({"input": ""}, "input[0]", "1 to 32768"),
        ({"input": ["a", ""]}, "input[1]", "1 to 32768"),
        ({"input": ["a", None]}, "input[1]", "string"),
        ({"input": "x" * (MAX_INPUT_CHARACTERS + 1)}, "input[0]", "32769"),
        ({"input": ["x"] * (MAX_INPUTS + 1)}, "input", "512"),
        ({"dimensions": 8}, "dimensions", f"must be {FAKE_DIMENSION}"),
        ({"dimensions": 0}, "dimensions", "at least 1"),
        ({"encoding_format": "int8"}, "encoding_format", "base64"),
        ({"input_type": "query"}, "input_type", "no such field"),
    ],
)
async def test_what_is_wrong_is_named(
    user: httpx2.AsyncClient, changed: dict[str, object], param: str, told: str
) -> None:
    answer = await user.post(PATH, json=ASKED | changed)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert told in answer.json()["error"]["message"]


async def test_texts_are_bounded_together(house: FakeHouse, embedder: FakeEmbedder) -> None:
    embeddings = Embeddings(embedder, EMBEDDING_MODEL, house.admission)
    texts = ["x" * MAX_INPUT_CHARACTERS] * (MAX_ALL_CHARACTERS // MAX_INPUT_CHARACTERS)
    ada = await house.caller("ada")
    assert len((await embeddings.embed(ada, EMBEDDING_MODEL, texts, None)).vectors) == len(texts)
    with pytest.raises(InvalidRequest, match="together"):
        await embeddings.embed(ada, EMBEDDING_MODEL, [*texts, "x"], None)


async def test_another_model_is_named_with_the_right_one(user: httpx2.AsyncClient, embedder: FakeEmbedder) -> None:
    answer = await user.post(PATH, json=ASKED | {"model": "text-embedding-3-small"})
    assert error_of(answer) == (404, "model_not_found", "model")
    assert EMBEDDING_MODEL in answer.json()["error"]["message"]
    assert embedder.calls == []


async def test_a_server_without_an_embedder_says_what_to_set(
    user: httpx2.AsyncClient, house: FakeHouse, app: FastAPI
) -> None:
    house.embedder = None
    house.stand_behind(app)
    answer = await user.post(PATH, json=ASKED)
    assert error_of(answer) == (404, "not_found", None)
    assert "BACKEND_EMBEDDING_BASE_URL" in answer.json()["error"]["message"]


async def test_strangers_get_nothing(stranger: httpx2.AsyncClient, embedder: FakeEmbedder) -> None:
    assert error_of(await stranger.post(PATH, json=ASKED))[0] == 401
    assert embedder.calls == []


@pytest.mark.parametrize(("failure", "status"), [(Unavailable("away"), 503), (ModelRequestRejected("no"), 400)])
async def test_a_failing_embedder_is_told(
    user: httpx2.AsyncClient, embedder: FakeEmbedder, failure: BallastError, status: int
) -> None:
    embedder.failure = failure
    answer = await user.post(PATH, json=ASKED)
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) is (status == 503)


async def test_a_request_takes_a_place_and_gives_it_back(
    user: httpx2.AsyncClient, house: FakeHouse, embedder: FakeEmbedder
) -> None:
    embedder.held = asyncio.Event()
    waiting = asyncio.ensure_future(user.post(PATH, json=ASKED))
    await embedder.called.wait()
    house.admission.close()
    assert (await user.post(PATH, json=ASKED)).status_code == 503, "who drains takes nothing new"
    embedder.held.set()
    assert (await waiting).status_code == 200
