"""Prompts: what exactly a turn's model calls sent."""

from typing import Annotated, Any

from fastapi import Depends

from backend.conversations.http.prompt_shapes import PromptList
from backend.conversations.services.use_cases import ConversationServices
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.identity.http.caller import CallerDep

ServicesDep = Annotated[ConversationServices, Depends(service_of(ConversationServices))]
router = new_router("Responses")


@router.get(
    "/v1/responses/{response_id}/prompts",
    summary="List what was sent to the model",
    response_model=PromptList,
    response_model_exclude_unset=True,
)
async def list_prompts(response_id: str, services: ServicesDep, caller: CallerDep) -> dict[str, Any]:
    """Return, for each model call of the turn, what was sent and what of it the call before had sent already."""
    return {"object": "list", "data": await services.prompts(caller, response_id)}
