"""Prompts: what exactly the model calls of a turn sent."""

from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from backend.conversations.domain.placed_blocks import Placement
from backend.conversations.domain.prompt_record import MissCause, Shortfall
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.identity.http.caller import CallerDep
from backend.prompt.services.read_prompts import ReadPrompts
from shared.models.values import JsonObject

LayoutsQuery = Annotated[bool, Query(description="Whether to tell what other layouts of the prompts would have cost.")]
PromptsDep = Annotated[ReadPrompts, Depends(service_of(ReadPrompts))]
router = new_router("Responses")


class PromptMessage(BaseModel):
    """A message as the provider got it, and in its order: without our own four fields these are the bytes sent.

    `tool_calls` stands on calls of the model, `tool_call_id` on results.
    """

    kind: str
    role: Literal["system", "user", "assistant", "tool"]
    tool_call_id: str | None = None
    content: str | list[JsonObject] | None
    tool_calls: list[JsonObject] | None = None
    position: int | None = Field(description="The place in the conversation's log; null for what is not kept there.")
    tokens: int = Field(description="Estimated.")
    reused: bool = Field(description="Whether the model call before had sent it at this place already.")


class PromptCost(BaseModel):
    """What a model call cost at the operator's prices."""

    currency: str
    amount: float
    saved: float = Field(description="What the provider's cache took off it.")


class PromptGauge(BaseModel):
    """How full the context window of the call's model was."""

    window_tokens: int
    used_tokens: int = Field(description="As the provider counted the prompt; estimated where it did not.")
    reserved_tokens: int = Field(description="What the answer may take.")


class LayoutCost(BaseModel):
    """What the call would have cost with the same words in other places; all tokens are estimated."""

    layout: Literal["as_sent", "context_in_system", "context_before_question", "results_forgotten"] = Field(
        description="Where context and results of tools would have stood; `as_sent` is the call as it was."
    )
    sent_tokens: int = Field(description="How long the call would have been.")
    cached_tokens: int = Field(description="What a cache of prefixes that has lost nothing could read again.")
    cost_tokens: int = Field(description="In tokens at the full price; one read from the cache counts a tenth.")


class Prompt(BaseModel):
    """What one model call sent, and what of it the call before had sent already."""

    response_id: str | None = Field(
        default=None, description="The response of the lane that made the call; only in a joined response's list."
    )
    call: int
    epoch: int
    epoch_reason: str | None = Field(description="Why an epoch began with this call; null where it went on.")
    tools: list[JsonObject]
    messages: list[PromptMessage]
    reused_bytes: int
    reused_tokens: int
    cached_tokens: int | None = Field(description="What the provider read from its cache; null where it did not say.")
    cost: PromptCost | None = Field(description="Null where the operator has given no prices.")
    first_difference: str | None = Field(
        description="The path of the first part that the call before had otherwise, such as `messages[3].content`."
    )
    shortfall: Shortfall | None = Field(
        description="Whose doing it is that the cache was not read as far as it could be; null where it was."
    )
    cache_miss: MissCause | None = Field(
        description="Why the provider read less from its cache than the call before had sent; null where it did not."
    )
    cache_diagnosis: str | None = Field(
        description="What the provider says of its cache, in its words; null where it was not asked, or says nothing."
    )
    placement: Placement = Field(description="Where the words of the agent stand: anchored in the log, or classic.")
    rewritten_tokens: int = Field(
        description="Estimated: what the call before had sent too, but elsewhere, so that no cache holds it."
    )
    purpose: Literal["answer", "summary"] = Field(
        description="`summary` where the call summarised an earlier part of the conversation, which is left out since."
    )
    gauge: PromptGauge | None = Field(description="Null where the model's window was not known.")
    layouts: list[LayoutCost] | None = Field(default=None, description="Where `layouts` asks for it.")


class PromptList(BaseModel):
    """All model calls of a turn, in order."""

    object: Literal["list"] = "list"
    data: list[Prompt]


@router.get(
    "/v1/responses/{response_id}/prompts",
    summary="List what was sent to the model",
    response_model=PromptList,
    response_model_exclude_unset=True,
)
async def list_prompts(
    response_id: str, read_prompts: PromptsDep, caller: CallerDep, layouts: LayoutsQuery = False
) -> JsonObject:
    """Return, for each model call of the turn, what was sent and what of it the call before had sent already."""
    return {"object": "list", "data": await read_prompts(caller, response_id, with_layouts=layouts)}
