"""The models of chat_shell, and how often it is asked for them."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import httpx2
import pytest
from openai.types import Model

from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller
from backend.knowledge.domain.tickets import SearchOptions
from backend.openai_api.domain.presets import Preset, TurnDefaults
from backend.turns.ports.presets import OfferedPreset
from backend.turns.services.request.model_catalogue import ModelCatalogue
from backend.turns.services.request.model_names import ModelNames
from shared.errors import ChatShellUnavailable, UnknownModel
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import FakeHouse
from tests.fakes.openai_house import ADA


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


@dataclass
class KnownPresets:
    """Presets that all callers may use, by name."""

    known: dict[str, Preset]

    async def find(self, caller: Caller, name: str) -> Preset | None:
        return self.known.get(name)

    async def usable(self, caller: Caller, refs: Collection[AgentRef]) -> frozenset[AgentRef]:
        return frozenset(ref for ref in refs if ref in [each.ref for each in self.known.values()])

    async def list_offered(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        return tuple(OfferedPreset(name, 0) for name in self.known)


def preset(name: str, model: str = "") -> Preset:
    search, defaults = SearchOptions(), TurnDefaults()
    return Preset(
        id=f"agent_{name}",
        name=name,
        model=model,
        instructions="",
        functions=(),
        knowledge_base_ids=(),
        search=search,
        defaults=defaults,
    )


def names_of(*presets: Preset) -> ModelNames:
    return ModelNames(
        ModelCatalogue(FakeModelLister("a", "b"), FakeClock()), KnownPresets({p.name: p for p in presets})
    )


async def test_a_name_means_a_model_before_a_preset_and_none_the_default() -> None:
    names = names_of(preset("b", "a"), preset("mine", "b"), preset("plain"))
    for name, model, is_preset in (("", "a", False), ("b", "b", False), ("mine", "b", True), ("plain", "a", True)):
        found = await names.resolve(ADA, name)
        assert (found.card.name, found.preset is not None) == (model, is_preset)
    assert [each.name for each in await names.presets(ADA)] == ["mine", "plain"]


async def test_what_a_name_could_be_is_told_where_it_means_nothing() -> None:
    names = names_of(preset("mine", "gone"))
    with pytest.raises(UnknownModel, match="use one of 'a', 'b', 'mine'"):
        await names.resolve(ADA, "other")
    with pytest.raises(UnknownModel, match=r"uses the model 'gone', which is not offered any more; .* 'a', 'b'"):
        await names.resolve(ADA, "mine")


async def test_a_caller_has_lost_an_agent_that_is_another_one_by_now() -> None:
    names, mine = names_of(preset("mine")), preset("mine").ref
    assert not await names.has_lost(ADA, [mine])
    assert await names.has_lost(ADA, [mine, AgentRef(name="mine", id="agent_older")])
