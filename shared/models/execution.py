"""The request by which the backend has chat_shell run a turn, with everything that the turn needs."""

from datetime import datetime
from enum import StrEnum
from operator import not_
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.models.messages import AssistantMessage, Content, HistoryMessage, TurnMessage, is_none
from shared.models.values import Count, Instant, Int64, JsonObject, PositiveCount, Value


class AccessMode(StrEnum):
    """How a turn may use knowledge. There is no default: where the mode is unknown, it is restricted."""

    FULL = "full"
    RESTRICTED = "restricted"


class ReasoningEffort(StrEnum):
    """How much a reasoning model reasons; the values are OpenAI's."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Verbosity(StrEnum):
    """How long the answer shall be; the values are OpenAI's."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class User(Value):
    """The user for whom the turn runs."""

    id: str
    tenant: str
    display_name: str


class ToolDefinition(Value):
    """A function offered to the model; `parameters` is a JSON Schema object."""

    name: str
    description: str | None
    parameters: JsonObject | None
    strict: bool | None


class ServedTool(Value):
    """A tool of one of the operator's tool servers, as a conversation has fixed it.

    `definition` is what the model gets; its name is the server's with that of the tool. `server` and `tool` are the
    names by which chat_shell finds the tool again. It is offered in restricted turns only where `accepts_restricted`.
    """

    definition: ToolDefinition
    server: str
    tool: str
    accepts_restricted: bool


class NamedToolChoice(Value):
    """A tool choice by which the model must call this function."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedToolChoice


class ModelParameters(Value):
    """The parameters that the caller gave for the model; where one is None, the provider's default holds.

    `text_format` is the object `text.format` of OpenAI's API, where the caller wants structured output. The answer ends
    before the first of the `stop` sequences. `top_logprobs` counts the alternatives of each token that come with its
    log probability; where it is None, none is told. What has a default, earlier releases do not send.
    `extra` are further members of the provider's request as the caller wrote them, only such as the model's card lists.
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
    seed: Int64 | None = None
    stop: tuple[str, ...] = ()
    # Left out where they are None, because the release before refuses a field that it does not know.
    extra: JsonObject | None = Field(default=None, exclude_if=is_none)
    top_logprobs: Int64 | None = Field(default=None, exclude_if=is_none)


class DynamicBlock(Value):
    """A named text that the caller gives for one request; it is sent after the knowledge metadata."""

    name: str
    text: str


class KnowledgeBaseRef(Value):
    """A knowledge base in scope, and how this user may use it."""

    id: str
    name: str
    access_mode: AccessMode


class Knowledge(Value):
    """The knowledge bases in scope, the strictest of their modes, and the signed ticket for retrieval.

    `user_words` is the newest of what the user wrote in the conversation, also in turns that are no longer sent
    to the model; it is all that may be said to them again whatever a restricted base holds. Other turns do without.
    """

    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    ticket: str
    user_words: str

    @model_validator(mode="after")
    def _strictest_mode_wins(self) -> Self:
        restricted = any(base.access_mode is AccessMode.RESTRICTED for base in self.bases)
        if restricted and self.access_mode is AccessMode.FULL:
            raise ValueError("access_mode: a restricted base makes the whole turn restricted")
        return self

    @model_validator(mode="after")
    def _only_restricted_turns_compare(self) -> Self:
        if self.user_words and self.access_mode is AccessMode.FULL:
            raise ValueError("user_words: only a restricted turn has them, any other must leave them empty")
        return self


class TurnLimits(Value):
    """The limits of one turn: calls of knowledge tools, and model calls, the last of which may not call tools.

    A turn whose prompt would reach `hand_back_tokens` with a further model call is handed back before that call, so
    that the backend can leave out a part of its history; None where nothing can be left out.
    """

    max_knowledge_calls: Count
    max_model_calls: PositiveCount | None
    # Left out where it is None, because the release before refuses a field that it does not know.
    hand_back_tokens: PositiveCount | None = Field(default=None, exclude_if=is_none)


class Purpose(StrEnum):
    """What a turn is for: an answer to its user, or a summary of its history, which the backend keeps."""

    ANSWER = "answer"
    SUMMARY = "summary"


class ExecutionRequest(Value):
    """A whole turn. Every field is required, so that no field that was forgotten permits anything.

    `history` holds the messages of the conversation log exactly as they were sent before. `prompt` is the current
    message of the user without its date suffix; it is None where no message of the user is the last: the turn continues
    from tool results, or the model goes on. `added` holds
    what the turn has behind it, which is nothing unless it was begun before: complete exchanges with tools, and
    messages of the user that entered meanwhile. `reminder` is a text of an agent that each request reminds of. With
    `keeps_reminders` reminders stay where they were first sent; otherwise the one of each request is its last message,
    and stands in no log. `reads_files` says that the tool is offered which reads attached files. Where the purpose is a
    summary, `prompt` is an instruction and gets no date suffix. `served_tools` are offered beside the knowledge tools
    and `tools`, which the client runs itself.
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
    added: tuple[TurnMessage, ...] = ()
    reminder: str = Field(default="", exclude_if=not_)
    reads_files: bool = Field(default=False, exclude_if=not_)
    purpose: Purpose = Purpose.ANSWER
    # Left out where it is empty, because the release before refuses a field that it does not know.
    served_tools: tuple[ServedTool, ...] = Field(default=(), exclude_if=not_)
    keeps_reminders: bool = Field(default=False, exclude_if=not_)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.prompt is None and not self.history and not self.system_prompt:
            raise ValueError("prompt: only behind a history or a system prompt may it be left out")
        return self

    @model_validator(mode="after")
    def _adds_whole_exchanges(self) -> Self:
        if self.added and isinstance(self.added[-1], AssistantMessage):
            raise ValueError("added: must end with the result of a tool call, or with a message of the user")
        return self

    @model_validator(mode="after")
    def _names_each_tool_once(self) -> Self:
        names = [tool.name for tool in self.tools]
        if len(names) != len(set(names)):
            raise ValueError("tools: each name may stand only once")
        names += [tool.definition.name for tool in self.served_tools]
        if len(names) != len(set(names)):
            raise ValueError("served_tools: each name may stand only once, in 'tools' or here")
        return self


def count_seconds_left(deadline: datetime, now: datetime) -> float:
    """Return the seconds until the deadline; 0.0 when it has passed."""
    return max(0.0, (deadline - now).total_seconds())
