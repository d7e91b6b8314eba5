"""The ports for calling models and for listing the configured ones."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.models.events import Cost, FinishReason, ModelCard, Usage
from shared.models.execution import ModelParameters, Purpose, ToolDefinition
from shared.models.messages import Message, ProviderReasoning, ToolCall, UserMessage
from shared.models.values import JsonObject, Value


class ModelCall(Value):
    """A complete request to a model; equal values are encoded as equal bytes.

    The first `stored` messages are the system message and the history, which later turns send again. `reminder` is the
    text of a user message behind all others, which no other call sends again; "" where there is none. A reminder that
    stays is one of `messages`. With a `cache_salt` only calls of the same salt share what the provider caches.
    `compared_with` is the id of the answer to the call before, by which a provider may say why its cache was missed.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    parameters: ModelParameters
    cache_key: str
    stored: int = 0
    reminder: str = ""
    purpose: Purpose = Purpose.ANSWER
    tenant: str = ""
    conversation_id: str = ""
    cache_salt: str = ""
    compared_with: str = ""

    @property
    def sent_messages(self) -> tuple[Message, ...]:
        """All messages of the request, the reminder among them."""
        return (*self.messages, UserMessage(content=self.reminder)) if self.reminder else self.messages

    def with_extra(self, body: JsonObject) -> JsonObject:
        """Put the caller's further parameters behind the members of a request that its adapter writes itself."""
        return body | {name: value for name, value in (self.parameters.extra or {}).items() if body.get(name) is None}


@dataclass(frozen=True, slots=True)
class TextFragment:
    """Text of the answer, joined from all frames of one read."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningFragment:
    """Text of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalFragment:
    """Text of a refusal that the provider marks as one."""

    text: str


@dataclass(frozen=True, slots=True)
class CallFragment:
    """A piece of the arguments of a tool call that the model writes.

    `place` counts the calls of the answer from 0, in the order in which they begin. `call_id` and `name` are "" where
    they have not come yet, or never will.
    """

    place: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class LogprobsFragment:
    """The log probabilities of tokens of the answer's text, which follows: a JSON list in the form of OpenAI's APIs."""

    tokens: str


class ModelAnswerEnd(Value):
    """The last item of every stream that did not fail: complete tool calls, reason and usage.

    `reasoning` goes into the log with the answer, of which it tells its places; `cost` is None without prices.
    `left_out` says in words what the answer held beside that, which no value can hold. `answer_id` is the provider's,
    `cache_diagnosis` what it says of its cache.
    """

    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage
    reasoning: ProviderReasoning | None = None
    cost: Cost | None = None
    left_out: tuple[str, ...] = ()
    answer_id: str = ""
    cache_diagnosis: str = ""


ModelFragment = TextFragment | ReasoningFragment | RefusalFragment | CallFragment | LogprobsFragment | ModelAnswerEnd


class Model(Protocol):
    """A provider's API. Closing the iterator (`aclosing`) closes the connection to the provider."""

    def stream(self, call: ModelCall, deadline: datetime) -> AsyncIterator[ModelFragment]:
        """Run one model call.

        Raises:
            ModelError: one of its subclasses; each says whether a retry may help.
            DeadlineExceeded: the deadline passed.
        """
        ...


class ModelDirectory(Protocol):
    """The models that the operator has configured."""

    def cards(self) -> tuple[ModelCard, ...]:
        """Return the offered models, in the operator's order; the first is the default."""
        ...

    def card(self, name: str) -> ModelCard:
        """Return the card of a model.

        Raises:
            UnknownModel: the model is not offered.
        """
        ...

    def model(self, name: str) -> Model:
        """Return the adapter of a model.

        Raises:
            UnknownModel: the model is not offered.
        """
        ...
