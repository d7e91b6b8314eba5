"""The routes of models, as OpenAI's API defines them."""

from typing import Annotated, Literal

from fastapi import Depends
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.identity.http.caller import CallerDep
from backend.turns.services.use_cases import TurnServices
from shared.models.events import ModelCard

ServicesDep = Annotated[TurnServices, Depends(service_of(TurnServices))]
router = new_router("Models")


class Model(BaseModel):
    """A model. chat_shell does not say since when it offers one: `created` is 0."""

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
    """Return what chat_shell offers, its default first."""
    return ModelList(data=[_shown(card) for card in await services.models.all()])


@router.get("/v1/models/{model_id:path}", summary="Retrieve a model")
async def retrieve_model(model_id: str, services: ServicesDep, caller: CallerDep) -> Model:
    """Return one model; names may hold slashes."""
    return _shown(await services.models.find(model_id))


def _shown(card: ModelCard) -> Model:
    return Model(id=card.name)
