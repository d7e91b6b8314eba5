"""`POST /v1/moderations`: who gets what, and what is refused."""

import httpx2
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI
from openai.types import ModerationCreateResponse

from shared.errors import BallastError, ModelRequestRejected, Unavailable
from tests.fakes.http_api import BASE_URL, MODERATION_MODEL, FakeHouse
from tests.fakes.meaning import FakeModerator

PATH = "/v1/moderations"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
TEXT = {"type": "text", "text": "I will hurt you"}


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse(moderator=FakeModerator())


@pytest.fixture
def moderator(house: FakeHouse) -> FakeModerator:
    assert house.moderator is not None
    return house.moderator


async def test_the_official_client_gets_what_the_provider_says(
    user: httpx2.AsyncClient, moderator: FakeModerator
) -> None:
    key = user.headers["authorization"].removeprefix("Bearer ")
    client = AsyncOpenAI(base_url=f"{BASE_URL}/v1", api_key=key, http_client=user)
    answer = await client.moderations.create(input=["I will hurt you", "Good morning"], model=MODERATION_MODEL)
    assert [each.flagged for each in answer.results] == [True, False]
    assert answer.results[0].categories.violence
    ModerationCreateResponse.model_validate_json(answer.model_dump_json(by_alias=True), strict=True)
    parts = await client.moderations.create(
        input=[
            {"type": "text", "text": "I will hurt you"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        ]
    )
    assert [each.flagged for each in parts.results] == [True]
    assert moderator.given == [["I will hurt you", "Good morning"], [TEXT, IMAGE]]


WRONG: list[tuple[dict[str, object], str, str]] = [
    ({}, "input", "required"),
    ({"input": ""}, "input[0]", "1 to 32768"),
    ({"input": []}, "input", "1 to 512"),
    ({"input": ["a", ""]}, "input[1]", "1 to 32768"),
    ({"input": [IMAGE, {"type": "text", "text": ""}]}, "input[1]", "1 to 32768"),
    ({"input": [{"type": "audio", "audio": "x"}]}, "input[0].type", "audio"),
    ({"input": [{"type": "image_url", "image_url": {}}]}, "input[0].image_url.url", "required"),
    ({"input": "a", "categories": []}, "categories", "no such field"),
]


@pytest.mark.parametrize(("changed", "param", "told"), WRONG)
async def test_what_is_wrong_is_named(
    user: httpx2.AsyncClient, moderator: FakeModerator, changed: dict[str, object], param: str, told: str
) -> None:
    answer = await user.post(PATH, json=changed)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert told in answer.json()["error"]["message"]
    assert moderator.given == []


async def test_another_model_is_named_with_the_right_one(user: httpx2.AsyncClient) -> None:
    answer = await user.post(PATH, json={"input": "a", "model": "text-moderation-1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert MODERATION_MODEL in answer.json()["error"]["message"]


async def test_a_server_without_a_provider_says_what_to_set(
    user: httpx2.AsyncClient, house: FakeHouse, app: FastAPI
) -> None:
    house.moderator = None
    house.stand_behind(app)
    answer = await user.post(PATH, json={"input": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert "BACKEND_MODERATION_BASE_URL" in answer.json()["error"]["message"]


async def test_strangers_get_nothing(stranger: httpx2.AsyncClient, moderator: FakeModerator) -> None:
    assert (await stranger.post(PATH, json={"input": "a"})).status_code == 401
    assert moderator.given == []


@pytest.mark.parametrize(("failure", "status"), [(Unavailable("away"), 503), (ModelRequestRejected("no"), 400)])
async def test_a_failing_provider_is_told(
    user: httpx2.AsyncClient, moderator: FakeModerator, failure: BallastError, status: int
) -> None:
    moderator.failure = failure
    assert (await user.post(PATH, json={"input": "a"})).status_code == status


async def test_who_drains_takes_nothing_new(user: httpx2.AsyncClient, house: FakeHouse) -> None:
    house.admission.close()
    assert (await user.post(PATH, json={"input": "a"})).status_code == 503
