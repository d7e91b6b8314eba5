"""The messages of Chat Completions, and the input items that mean the same."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

from backend.conversations.domain.images import check_image_url
from backend.conversations.domain.input_items import (
    PARTS,
    TEXT_OR_PARTS,
    AssistantItem,
    CallId,
    CustomToolCallItem,
    Detail,
    FunctionCallItem,
    FunctionCallOutputItem,
    FunctionName,
    Given,
    InputFilePart,
    InputImagePart,
    InputItem,
    InputPart,
    InputTextPart,
    OutputTextPart,
    ReasonedItem,
    RefusalPart,
    SystemItem,
    UserItem,
)
from shared.errors import InvalidRequest
from shared.models.canonical import REASONING_MEMBERS, read_reasoning
from shared.models.values import JsonObject, JsonValue

MAX_CALLS = 128


class ChatTextPart(Given):
    """Text inside a message."""

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: JsonValue = None


class ImageLink(Given):
    """Where an image is: an http(s) address, or the image itself in a data address."""

    url: str
    detail: Detail | None = None

    @field_validator("url")
    @classmethod
    def _is_reachable_or_inline(cls, url: str) -> str:
        check_image_url(url)
        return url


class ChatImagePart(Given):
    """An image inside a message."""

    type: Literal["image_url"]
    image_url: ImageLink
    prompt_cache_breakpoint: JsonValue = None


class ChatFile(Given):
    """A document: its bytes in base64, as a data URL or bare, or the id of a stored file."""

    filename: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    file_data: str | None = None
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class ChatFilePart(Given):
    """A document inside a message."""

    type: Literal["file"]
    file: ChatFile
    prompt_cache_breakpoint: JsonValue = None


class CalledFunction(Given):
    """The function of a call, and its arguments as the model wrote them."""

    name: FunctionName
    arguments: str
    parsed_arguments: JsonValue = None


class ChatFunctionCall(Given):
    """A model's call of a function of the client."""

    id: CallId
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class CalledCustomTool(Given):
    """The custom tool of a call, and its input."""

    name: FunctionName
    input: str


class ChatCustomCall(Given):
    """A model's call of a custom tool of the client."""

    id: CallId
    type: Literal["custom"]
    custom: CalledCustomTool
    index: int | None = None


def _tag_of_call(value: object) -> str | None:
    kind = (cast(JsonObject, value).get("type") or "function") if isinstance(value, dict) else None
    return f"a {kind}" if isinstance(kind, str) else None


ChatToolCall = Annotated[
    Annotated[ChatFunctionCall, Tag("a function")] | Annotated[ChatCustomCall, Tag("a custom")],
    Discriminator(_tag_of_call),
]

ChatPart = Annotated[ChatTextPart | ChatImagePart | ChatFilePart, Field(discriminator="type")]
SaidPart = Annotated[ChatTextPart | RefusalPart, Field(discriminator="type")]
ChatContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ChatPart], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]
TextContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Annotated[ChatTextPart, Field()]], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]
SaidContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[SaidPart], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]


def _refuse_other_role(role: object) -> object:
    """Raise an error that names all roles; a message of an unknown role is validated as a user's message."""
    if role != "user":
        roles = "'system', 'developer', 'user', 'assistant' or 'tool'"
        raise PydanticCustomError("unknown_role", f"Input should be {roles}")
    return role


class _Spoken(Given):
    """What every message may carry; the name of who speaks is accepted and not sent to a model."""

    name: str | None = None


class SystemChatMessage(_Spoken):
    """Instructions."""

    role: Literal["system", "developer"]
    content: TextContent


class UserChatMessage(_Spoken):
    """A message of a user."""

    role: Annotated[Literal["user"], BeforeValidator(_refuse_other_role)]
    content: ChatContent


class AssistantChatMessage(_Spoken):
    """A message of a model, with the functions that it called.

    What clients send back of an answer and no model is sent (annotations) is accepted and left out;
    `provider_specific_fields` and `thinking_blocks` are what LiteLLM adds to a message that it has read.
    """

    role: Literal["assistant"]
    content: SaidContent | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[ChatToolCall], Field(max_length=MAX_CALLS, fail_fast=True)] | None = None
    annotations: list[JsonValue] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    parsed: JsonValue = None
    provider_specific_fields: JsonValue = None
    thinking_blocks: JsonValue = None
    audio: None = None
    function_call: None = None


class ToolChatMessage(_Spoken):
    """The result of a function that the client ran."""

    role: Literal["tool"]
    tool_call_id: CallId
    content: ChatContent


def _tag_of_role(value: object) -> str:
    role = cast(JsonObject, value).get("role") if isinstance(value, dict) else None
    known = {"system": "instructions", "developer": "instructions", "assistant": "said", "tool": "result"}
    return known.get(str(role), "asked")


ChatMessage = Annotated[
    Annotated[SystemChatMessage, Tag("instructions")]
    | Annotated[UserChatMessage, Tag("asked")]
    | Annotated[AssistantChatMessage, Tag("said")]
    | Annotated[ToolChatMessage, Tag("result")],
    Discriminator(_tag_of_role),
]


class PlacedItem(NamedTuple):
    """An input item, and the path of what it was made of, such as `messages[3].tool_calls[0]`."""

    item: InputItem
    path: str


def items_of_message(message: ChatMessage, path: str) -> Iterator[PlacedItem]:
    """Translate a message: a call of a function is an item of its own, behind the text that came with it.

    Raises:
        InvalidRequest: an assistant's message says nothing and calls nothing; `param` is its content.
    """
    match message:
        case SystemChatMessage():
            content = message.content if isinstance(message.content, str) else _text_parts(message.content)
            yield PlacedItem(SystemItem(role=message.role, content=content), path)
        case UserChatMessage():
            yield PlacedItem(UserItem(role="user", content=_input_content(message.content)), path)
        case ToolChatMessage():
            output = _input_content(message.content)
            result = FunctionCallOutputItem(type="function_call_output", call_id=message.tool_call_id, output=output)
            yield PlacedItem(result, path)
        case AssistantChatMessage():
            yield from _items_of_answer(message, path)


def _items_of_answer(message: AssistantChatMessage, path: str) -> Iterator[PlacedItem]:
    said = _content_of(message)
    if said is None and not message.tool_calls:
        wanted = "This field is required; give the text that was said, or the tool_calls."
        raise InvalidRequest(wanted, param=f"{path}.content")
    given = {name: getattr(message, name) for name in REASONING_MEMBERS}
    reasoning = read_reasoning({name: text for name, text in given.items() if text is not None})
    if reasoning is not None:
        yield PlacedItem(ReasonedItem(role="assistant", content=said or "", reasoning=reasoning), path)
    elif said or not message.tool_calls:
        yield PlacedItem(AssistantItem(role="assistant", content=said or ""), path)
    for place, call in enumerate(message.tool_calls or ()):
        yield PlacedItem(_call_item(call), f"{path}.tool_calls[{place}]")


def _call_item(call: ChatFunctionCall | ChatCustomCall) -> FunctionCallItem | CustomToolCallItem:
    if isinstance(call, ChatCustomCall):
        tool = call.custom
        return CustomToolCallItem(type="custom_tool_call", call_id=call.id, name=tool.name, input=tool.input)
    function = call.function
    return FunctionCallItem(type="function_call", call_id=call.id, name=function.name, arguments=function.arguments)


def _content_of(message: AssistantChatMessage) -> str | list[OutputTextPart | RefusalPart] | None:
    if isinstance(message.content, str) and not message.refusal:
        return message.content
    parts = list[OutputTextPart | RefusalPart]()
    given = [] if message.content is None else message.content
    for part in [ChatTextPart(type="text", text=given)] if isinstance(given, str) else given:
        is_text = isinstance(part, ChatTextPart)
        parts.append(OutputTextPart(type="output_text", text=part.text) if is_text else part)
    if message.refusal:
        parts.append(RefusalPart(type="refusal", refusal=message.refusal))
    return parts or None


def _input_content(content: str | Sequence[ChatPart]) -> str | list[InputPart]:
    if isinstance(content, str):
        return content
    return [_input_part(part) for part in content]


def _input_part(part: ChatPart) -> InputPart:
    if isinstance(part, ChatTextPart):
        return InputTextPart(type="input_text", text=part.text)
    if isinstance(part, ChatFilePart):
        file = part.file
        return InputFilePart(type="input_file", filename=file.filename, file_data=file.file_data, file_id=file.file_id)
    # The address was checked when the message was read; a second look at megabytes of it would cost as much again.
    return InputImagePart.model_construct(
        type="input_image", image_url=part.image_url.url, detail=part.image_url.detail or "auto"
    )


def _text_parts(content: Sequence[ChatTextPart]) -> list[InputTextPart]:
    return [InputTextPart(type="input_text", text=part.text) for part in content]
