"""The routes of models, as OpenAI's API defines them."""

from typing import Annotated, Literal

from fastapi import Depends
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.identity.http.caller import CallerDep
from backend.turns.ports.presets import OfferedPreset
from backend.turns.services.request.model_names import list_names
from backend.turns.services.use_cases import TurnServices
from shared.errors import UnknownModel

ServicesDep = Annotated[TurnServices, Depends(service_of(TurnServices))]
router = new_router("Models")


class Model(BaseModel):
    """A model, or an agent. chat_shell does not say since when it offers a model: `created` is 0."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "ballast"


class ModelList(BaseModel):
    """All models, in one page."""

    object: Literal["list"] = "list"
    data: list[Model]


@router.get("/v1/models", summary="List the models")
async def list_models(services: ServicesDep, caller: CallerDep) -> ModelList:
    """Return what chat_shell offers, its default first, then the agents that the caller may use, by name."""
    models = [Model(id=card.name) for card in await services.models.cards()]
    return ModelList(data=models + [_agent(each) for each in await services.models.presets(caller)])


@router.get("/v1/models/{model_id:path}", summary="Retrieve a model")
async def retrieve_model(model_id: str, services: ServicesDep, caller: CallerDep) -> Model:
    """Return one model, or an agent that the caller may use; names may hold slashes."""
    shown = await list_models(services, caller)
    found = next((each for each in shown.data if each.id == model_id), None)
    if found is None:
        names = list_names([each.id for each in shown.data])
        raise UnknownModel(f"The model '{model_id}' does not exist; use one of {names}.", param="model")
    return found


def _agent(offered: OfferedPreset) -> Model:
    return Model(id=offered.name, created=offered.created_at, owned_by="agent")
