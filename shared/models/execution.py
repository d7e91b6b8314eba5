"""The one contract between backend and chat_shell: all that a turn needs, as a value."""

from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from shared.models.messages import Content, HistoryMessage, ToolMessage
from shared.models.values import Count, Instant, Int64, JsonObject, PositiveCount, Value


class AccessMode(StrEnum):
    """How knowledge may be used in a turn. There is no default: who cannot say is restricted."""

    FULL = "full"
    RESTRICTED = "restricted"


class ReasoningEffort(StrEnum):
    """How long a reasoning model thinks; OpenAI's words."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Verbosity(StrEnum):
    """How much the answer shall say; OpenAI's words."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class User(Value):
    """On whose behalf the turn runs."""

    id: str
    tenant: str
    display_name: str


class ToolDefinition(Value):
    """A function offered to the model; `parameters` is a JSON Schema object."""

    name: str
    description: str | None
    parameters: JsonObject | None
    strict: bool | None


class NamedToolChoice(Value):
    """The model must call this one function."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedToolChoice


class ModelParameters(Value):
    """What the caller asked of the model; None leaves it to the provider.

    `text_format` is OpenAI's `text.format` object where the caller wants structured output.
    """

    temperature: float | None
    top_p: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    max_output_tokens: Int64 | None
    reasoning_effort: ReasoningEffort | None
    text_format: JsonObject | None
    verbosity: Verbosity | None
    tool_choice: ToolChoice
    parallel_tool_calls: bool


class DynamicBlock(Value):
    """A named block of request-scoped text, sent after the knowledge metadata."""

    name: str
    text: str


class KnowledgeBaseRef(Value):
    """A bound base and how this user may use it."""

    id: str
    name: str
    access_mode: AccessMode


class Knowledge(Value):
    """The bound bases, the strictest mode of them, and the signed ticket for retrieval."""

    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    ticket: str

    @model_validator(mode="after")
    def _strictest_mode_wins(self) -> Self:
        restricted = any(base.access_mode is AccessMode.RESTRICTED for base in self.bases)
        if restricted and self.access_mode is AccessMode.FULL:
            raise ValueError("access_mode: a restricted base makes the whole turn restricted")
        return self


class TurnLimits(Value):
    """Bounds on one turn: calls of knowledge tools, and model calls (the last one must answer)."""

    max_knowledge_calls: Count
    max_model_calls: PositiveCount | None


class ExecutionRequest(Value):
    """One turn, whole. Every field is required, so that nothing is permitted by omission.

    `history` is the conversation log's messages exactly as once sent. `prompt` is the current user
    message without its date suffix; it is None when the turn continues from tool results alone.
    """

    request_id: str
    conversation_id: str
    turn_id: str
    epoch: Count
    user: User
    model: str
    parameters: ModelParameters
    system_prompt: str
    history: tuple[HistoryMessage, ...]
    kb_meta_prompt: str
    dynamic_blocks: tuple[DynamicBlock, ...]
    prompt: Content | None
    sent_at: Instant
    time_zone: str
    knowledge: Knowledge
    tools: tuple[ToolDefinition, ...]
    limits: TurnLimits
    cache_key: str
    deadline: Instant

    @model_validator(mode="after")
    def _continues_from_a_result(self) -> Self:
        if self.prompt is None and not (self.history and isinstance(self.history[-1], ToolMessage)):
            raise ValueError("prompt: only a history that ends with a tool result may go without one")
        return self

    @model_validator(mode="after")
    def _names_each_tool_once(self) -> Self:
        names = [tool.name for tool in self.tools]
        if len(names) != len(set(names)):
            raise ValueError("tools: each name may stand only once")
        return self


def remaining_seconds(deadline: datetime, now: datetime) -> float:
    """Seconds left until the deadline; 0.0 when it has passed."""
    return max(0.0, (deadline - now).total_seconds())
