"""The body of the OpenAI Responses request that carries an `ExecutionRequest`, as strictly typed values."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Json

from shared.models.execution import (
    AccessMode,
    DynamicBlock,
    Purpose,
    ReasoningEffort,
    ServedTool,
    TurnLimits,
    User,
    Verbosity,
)
from shared.models.messages import ImageDetail, ProviderReasoning, TurnMessage
from shared.models.values import Count, Instant, Int64, JsonObject, JsonValue, Value


def _epoch(text: object) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise ValueError("must be a whole number in decimal digits")
    return int(text)


def _moment(text: object) -> datetime:
    try:
        return datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError as error:
        raise ValueError("must be an instant as ISO 8601 writes it, with its offset") from error


def _one_of(kind: type[StrEnum]) -> BeforeValidator:
    def read(text: object) -> StrEnum:
        if text not in (words := [member.value for member in kind]):
            raise ValueError(f"must be one of {', '.join(words)}")
        return kind(text)

    return BeforeValidator(read)


EpochText = Annotated[Count, BeforeValidator(_epoch)]
InstantText = Annotated[Instant, BeforeValidator(_moment)]
AccessModeText = Annotated[AccessMode, _one_of(AccessMode)]
EffortText = Annotated[ReasoningEffort, _one_of(ReasoningEffort)]
VerbosityText = Annotated[Verbosity, _one_of(Verbosity)]
PurposeText = Annotated[Purpose, _one_of(Purpose)]
DetailText = Annotated[ImageDetail, _one_of(ImageDetail)]


class FunctionTool(Value):
    """An element of the field `tools`."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class FunctionChoice(Value):
    """The value of the field `tool_choice` that names a function."""

    type: Literal["function"]
    name: str


class Reasoning(Value):
    """The value of the field `reasoning`."""

    effort: EffortText | None = None


class TextOptions(Value):
    """The value of the field `text`."""

    format: JsonObject | None = None
    verbosity: VerbosityText | None = None


class KnowledgeBaseBody(Value):
    """An element of the field `metadata.knowledge_bases`; a base without an access mode is restricted."""

    id: str
    name: str
    access_mode: AccessMode | None = None


class Metadata(Value):
    """The fields for which OpenAI's API has no field of its own, each as a string.

    A turn without an access mode is restricted.
    """

    request_id: str
    conversation_id: str
    turn_id: str
    epoch: EpochText
    user: Json[User]
    kb_meta_prompt: str
    dynamic_blocks: Json[tuple[DynamicBlock, ...]]
    sent_at: InstantText
    time_zone: str
    access_mode: AccessModeText | None = None
    ticket: str
    user_words: str = ""
    knowledge_bases: Json[tuple[KnowledgeBaseBody, ...]]
    limits: Json[TurnLimits]
    deadline: InstantText
    added: Json[tuple[TurnMessage, ...]] = ()
    has_prompt: Json[bool] = True
    reminder: str = ""
    reads_files: Json[bool] = False
    purpose: PurposeText = Purpose.ANSWER
    served_tools: Json[tuple[ServedTool, ...]] = ()
    presence_penalty: Json[float] | None = None
    frequency_penalty: Json[float] | None = None
    seed: Json[Int64] | None = None
    stop: Json[tuple[str, ...]] = ()
    top_logprobs: Json[Int64] | None = None
    extra: Json[JsonObject] | None = None


class RequestBody(Value):
    """The whole body; the fields that are optional in OpenAI's API are optional here."""

    model: str
    input: JsonValue
    instructions: str | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: JsonValue = "auto"
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: Int64 | None = None
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    prompt_cache_key: str
    stream: Literal[True] = True
    store: Literal[False] = False
    metadata: Metadata


class InputText(Value):
    """A text part of a user's message or of a tool's result."""

    type: Literal["input_text"]
    text: str


class InputImage(Value):
    """An image part; as in OpenAI's API, `detail` is auto by default."""

    type: Literal["input_image"]
    image_url: str
    detail: DetailText = ImageDetail.AUTO


class OutputText(Value):
    """A text part of an assistant's message."""

    type: Literal["output_text"]
    text: str
    annotations: list[JsonValue] = Field(default=[], max_length=0)


class Item(Value):
    """The base of items, with the fields that OpenAI's items may have in addition; both are accepted and ignored."""

    id: str | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None


class UserItem(Item):
    """A message of a user."""

    type: Literal["message"] = "message"
    role: Literal["user"]
    content: JsonValue


class SystemItem(Item):
    """A message of the system inside the history."""

    type: Literal["message"] = "message"
    role: Literal["system"]
    content: str


class AssistantItem(Item):
    """A message of the model."""

    type: Literal["message"] = "message"
    role: Literal["assistant"]
    content: str | list[JsonValue]


class ReasoningItem(Item):
    """What a provider wants to be sent again with the answer that follows: `ProviderReasoning` in JSON."""

    type: Literal["reasoning"]
    summary: list[JsonValue] = Field(default=[], max_length=0)
    encrypted_content: Json[ProviderReasoning]


class FunctionCallItem(Item):
    """A tool call of the model."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class FunctionCallOutputItem(Item):
    """The result of a tool call."""

    type: Literal["function_call_output"]
    call_id: str
    output: JsonValue
