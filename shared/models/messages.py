"""Messages as a model sees them: what the conversation log keeps and what a request carries."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from shared.models.values import Value


class ImageDetail(StrEnum):
    """How closely a model looks at an image; OpenAI's words."""

    LOW = "low"
    HIGH = "high"
    AUTO = "auto"
    ORIGINAL = "original"


class TextPart(Value):
    """A run of text inside a message."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Value):
    """An image inside a message; `url` is an http(s) or a data address."""

    type: Literal["image"] = "image"
    url: str
    detail: ImageDetail


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Content = str | tuple[Part, ...]


class ToolCall(Value):
    """A model's demand for a tool; `arguments` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str


class SystemMessage(Value):
    """The constant head of a prompt."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Value):
    """What a user, or the dynamic context on his behalf, says."""

    role: Literal["user"] = "user"
    content: Content


class AssistantMessage(Value):
    """What a model said in one model call: its own text, untouched, and its tool calls in order."""

    role: Literal["assistant"] = "assistant"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()


class ToolMessage(Value):
    """The result of one tool call, as the model sees it."""

    role: Literal["tool"] = "tool"
    call_id: str
    content: Content


HistoryMessage = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]
AddedMessage = Annotated[AssistantMessage | ToolMessage, Field(discriminator="role")]
Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
