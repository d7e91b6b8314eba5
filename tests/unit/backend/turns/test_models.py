"""The models of chat_shell, and how often it is asked for them."""

import asyncio

import httpx2
import pytest
from openai.types import Model

from backend.turns.services.request.model_catalogue import ModelCatalogue
from shared.errors import ChatShellUnavailable
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import FakeHouse


async def test_models_are_listed_in_openais_shape(user: httpx2.AsyncClient) -> None:
    page = (await user.get("/v1/models")).json()
    assert page["object"] == "list"
    shown = [Model.model_validate(each, strict=True, extra="forbid") for each in page["data"]]
    assert [model.id for model in shown] == ["demo-model", "vendor/large"]


async def test_a_name_may_hold_slashes(user: httpx2.AsyncClient) -> None:
    assert (await user.get("/v1/models/vendor/large")).json()["id"] == "vendor/large"
    assert (await user.get("/v1/models/vendor%2Flarge")).json()["id"] == "vendor/large"


async def test_an_unknown_model_is_404(user: httpx2.AsyncClient) -> None:
    answer = await user.get("/v1/models/gpt-nope")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


async def test_chat_shell_away_is_503(user: httpx2.AsyncClient, house: FakeHouse) -> None:
    house.chat_shell.away = True
    answer = await user.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")
    house.chat_shell.away = False
    assert (await user.get("/v1/models")).status_code == 200


async def test_an_answer_serves_for_some_seconds() -> None:
    lister, clock = FakeModelLister("a"), FakeClock()
    catalogue = ModelCatalogue(lister, clock)
    await catalogue.all()
    lister.model_names.append("b")
    assert len(await catalogue.all()) == 1
    clock.advance(5)
    assert len(await catalogue.all()) == 2
    assert lister.asked == 2


@pytest.mark.parametrize("away", [False, True])
async def test_callers_at_the_same_time_share_one_question(away: bool) -> None:
    lister = FakeModelLister("a")
    lister.away = away
    lister.gate.clear()
    catalogue = ModelCatalogue(lister, FakeClock())
    async with asyncio.TaskGroup() as group:
        askers = [group.create_task(_succeeds(catalogue)) for _ in range(5)]
        await asyncio.sleep(0)
        lister.gate.set()
    assert [asker.result() for asker in askers] == [not away] * 5
    assert lister.asked == 1


async def _succeeds(catalogue: ModelCatalogue) -> bool:
    try:
        await catalogue.all()
    except ChatShellUnavailable:
        return False
    return True
