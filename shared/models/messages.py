"""Messages as a model receives them; the conversation log stores them and a request contains them."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from shared.models.values import Count, Value


class ImageDetail(StrEnum):
    """The resolution at which a model reads an image; the values are OpenAI's."""

    LOW = "low"
    HIGH = "high"
    AUTO = "auto"
    ORIGINAL = "original"


class TextPart(Value):
    """A text inside a message."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Value):
    """An image inside a message; `url` is an http(s) or a data URL."""

    type: Literal["image"] = "image"
    url: str
    detail: ImageDetail


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Content = str | tuple[Part, ...]


def texts_in(content: Content) -> tuple[str, ...]:
    """Return the texts of a content, in order."""
    return (
        (content,) if isinstance(content, str) else tuple(part.text for part in content if isinstance(part, TextPart))
    )


class ToolCall(Value):
    """A call of a tool by a model; `arguments` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str


class SystemMessage(Value):
    """A message of the system: the one with which a prompt begins, or one in the history that a client gave."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Value):
    """A message of the user, or one that the application adds in this role, such as the dynamic context."""

    role: Literal["user"] = "user"
    content: Content


class OpaqueItem(Value):
    """A piece of an answer that only its provider reads, as JSON text, and where among the words and calls it stood.

    It followed the first `after_characters` characters of the message's text and its first `after_calls` tool calls.
    """

    content: str
    after_characters: Count = 0
    after_calls: Count = 0


class ProviderReasoning(Value):
    """What a provider wants to be sent again, byte for byte, with the answer that it gave, or that a client gives.

    `api` names the provider API; the adapters of all others ignore it. No client is shown any of it, but what stands in
    messages of chat completions.
    """

    api: str
    items: tuple[OpaqueItem, ...]


def is_none(value: object) -> bool:
    """Whether a field that is left out of JSON where it is None may be left out."""
    return value is None


class AssistantMessage(Value):
    """The answer of one model call: its text, unchanged, its tool calls in order, and what goes back with them.

    `reasoning` belongs to exactly this text and these calls: whoever changes one of them leaves it out.
    """

    role: Literal["assistant"] = "assistant"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: ProviderReasoning | None = Field(default=None, exclude_if=is_none)


class ToolMessage(Value):
    """The result of one tool call, as the model receives it."""

    role: Literal["tool"] = "tool"
    call_id: str
    content: Content


HistoryMessage = Annotated[UserMessage | AssistantMessage | ToolMessage | SystemMessage, Field(discriminator="role")]
AddedMessage = Annotated[AssistantMessage | ToolMessage, Field(discriminator="role")]
TurnMessage = Annotated[AssistantMessage | ToolMessage | UserMessage, Field(discriminator="role")]
"""What a running turn has behind it: what it added itself, and messages that its user sent while it ran."""
Message = UserMessage | AssistantMessage | ToolMessage | SystemMessage
