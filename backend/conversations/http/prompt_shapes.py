"""What a turn's model calls sent, as the OpenAPI document describes it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from backend.conversations.domain.prompt_record import Shortfall


class PromptMessage(BaseModel):
    """A message as the provider got it, and in its order: without our own four fields these are the bytes sent.

    `tool_calls` stands on calls of the model, `tool_call_id` on results.
    """

    kind: str = Field(description="system, user, dynamic_context, assistant, tool_result or notice.")
    role: Literal["system", "user", "assistant", "tool"]
    tool_call_id: str | None = None
    content: str | list[dict[str, Any]] | None
    tool_calls: list[dict[str, Any]] | None = None
    position: int | None = Field(description="The place in the conversation's log; null for what is not kept there.")
    tokens: int = Field(description="Estimated.")
    reused: bool = Field(description="Whether the model call before had sent it at this place already.")


class Prompt(BaseModel):
    """What one model call sent, and what of it the call before had sent already."""

    call: int
    epoch: int
    epoch_reason: str | None = Field(description="Why an epoch began with this call; null where it went on.")
    tools: list[dict[str, Any]]
    messages: list[PromptMessage]
    reused_bytes: int
    reused_tokens: int = Field(description="Estimated.")
    cached_tokens: int | None = Field(description="What the provider read from its cache; null where it did not say.")
    first_difference: str | None = Field(
        description="The path of the first part that the call before had otherwise, such as `messages[3].content`."
    )
    shortfall: Shortfall | None = Field(
        description="Whose doing it is that the cache was not read as far as it could be; null where it was."
    )


class PromptList(BaseModel):
    """All model calls of a turn, in order."""

    object: Literal["list"] = "list"
    data: list[Prompt]
