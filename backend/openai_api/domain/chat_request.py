"""The body of `POST /v1/chat/completions`, as OpenAI's API defines it, and the turn that it asks for."""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter

from backend.conversations.domain.input_items import (
    MAX_ITEMS,
    CustomToolCallItem,
    FunctionCallOutputItem,
    FunctionName,
    Given,
)
from backend.conversations.domain.item_bodies import OUTPUT_LOGPROBS
from backend.conversations.domain.item_steps import STEP_WEIGHT, body_cooperatively
from backend.conversations.domain.passed_over import OR_LEFT_OUT, OR_OTHER_KIND, OtherKind, PassedOver
from backend.foundation.domain.json_objects import JsonText, Steps
from backend.openai_api.domain.chat_messages import ChatMessage, PlacedItem, items_of_message
from backend.openai_api.domain.client_left import StreamOptions
from backend.openai_api.domain.client_tools import CustomTool, FunctionChoice, FunctionTool, GrammarInput, PlainInput
from backend.openai_api.domain.turn_request import (
    FileSearchChoice,
    FileSearchTool,
    JsonSchemaFormat,
    PlainFormat,
    ReasoningOptions,
    TextOptions,
    TurnOptions,
    TurnRequest,
    check_request,
    turn_of,
)
from shared.errors import BallastError, InvalidRequest, UnsupportedValue
from shared.models.values import JsonObject, JsonValue


class DescribedFunction(Given):
    """A function that the client runs itself."""

    name: FunctionName
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class ChatFunctionTool(Given):
    """A function as a tool."""

    type: Literal["function"]
    function: DescribedFunction


class Grammar(Given):
    """A grammar, and how it is written."""

    syntax: Literal["lark", "regex"]
    definition: str


class ChatGrammarInput(Given):
    """Text that a grammar accepts."""

    type: Literal["grammar"]
    grammar: Grammar


class DescribedCustomTool(Given):
    """A tool that the client runs itself, whose input is text in place of JSON."""

    name: FunctionName
    description: str | None = None
    format: Annotated[PlainInput | ChatGrammarInput, Field(discriminator="type")] = PlainInput(type="text")


class ChatCustomTool(Given):
    """A custom tool."""

    type: Literal["custom"]
    custom: DescribedCustomTool


class NamedFunction(Given):
    """The name of a function, or of a custom tool."""

    name: FunctionName


class ChatFunctionChoice(Given):
    """This function must be called."""

    type: Literal["function"]
    function: NamedFunction


class ChatCustomChoice(Given):
    """This custom tool must be called."""

    type: Literal["custom"]
    custom: NamedFunction


class NamedSchema(Given):
    """The schema that an answer has to fit."""

    name: FunctionName
    schema_: JsonObject = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class ChatSchemaFormat(Given):
    """JSON that fits a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


class ChatStreamOptions(StreamOptions):
    """With `include_usage` one more chunk, which has no choices, tells the tokens of the whole turn."""

    include_usage: bool | None = None


def _tag_of_type(value: object) -> str | None:
    """Return a tag that is no key of any object, so that an error names the field by its path alone."""
    if not isinstance(value, dict):
        return "(mode)"
    kind = cast(JsonObject, value).get("type")
    return f"a {kind}" if isinstance(kind, str) else None


ChatTool = Annotated[
    Annotated[ChatFunctionTool, Tag("a function")]
    | Annotated[ChatCustomTool, Tag("a custom")]
    | Annotated[FileSearchTool, Tag("a file_search")],
    Discriminator(_tag_of_type),
]
ChatToolChoice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("(mode)")]
    | Annotated[ChatFunctionChoice, Tag("a function")]
    | Annotated[ChatCustomChoice, Tag("a custom")]
    | Annotated[FileSearchChoice, Tag("a file_search")],
    Discriminator(_tag_of_type),
]
ResponseFormat = Annotated[
    Annotated[PlainFormat, Tag("a text")]
    | Annotated[PlainFormat, Tag("a json_object")]
    | Annotated[ChatSchemaFormat, Tag("a json_schema")],
    Discriminator(_tag_of_type),
]
MaxTokens = Annotated[int, Field(ge=1, le=10_000_000)]
MAX_CHOICES = 8
"""Each choice takes a place for turns, and pays for the whole prompt."""


class ChatRequest(TurnOptions):
    """One turn as a client of Chat Completions asks for it; `messages` are the whole conversation so far."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_ITEMS, fail_fast=True)]
    stream_options: ChatStreamOptions | None = None
    tools: Annotated[list[Annotated[ChatTool, OR_OTHER_KIND]], Field(max_length=256, fail_fast=True)] | None = None
    tool_choice: Annotated[ChatToolChoice, OR_LEFT_OUT] | None = None
    response_format: ResponseFormat | None = None
    max_completion_tokens: MaxTokens | None = None
    max_tokens: MaxTokens | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    logprobs: bool | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=8, fail_fast=True)] | None = None
    audio: None = None
    prediction: None = None
    logit_bias: Annotated[JsonObject | None, BeforeValidator(lambda given: given or None)] = None
    web_search_options: None = None
    functions: JsonValue = None
    function_call: JsonValue = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with a chunk about the tokens used."""
        return self.stream_options is not None and self.stream_options.include_usage is True


@dataclass(frozen=True)
class ChatTurn:
    """A request and the turn that it asks for.

    `paths` are the places in the request of which the items of the turn's input were made.
    """

    chat: ChatRequest
    request: TurnRequest
    paths: tuple[str, ...]

    def name_as_given(self, error: BallastError) -> None:
        """Let an error about the turn's request name the field that the client has written."""
        tools = [self.chat.tool_choice, *(self.chat.tools or ())]
        error.name(_find_given_name(error.param, self.paths, [str(getattr(tool, "type", "")) for tool in tools]))


_MESSAGES: TypeAdapter[ChatMessage] = TypeAdapter(ChatMessage)
_INPUT_ITEM = re.compile(r"input\[(\d+)\](.*)", re.DOTALL)
_FILE_PART = re.compile(r"\.(?:content|output)(\[\d+\])\.(\w+)")
_FILE_FIELDS = {"file_data": ".file.file_data", "file_id": ".file.file_id"}
_LANE = re.compile(r"models\[\d+\]")
_OF_TOOL = re.compile(r"(?:tools\[(\d+)\]|tool_choice)(?=\.(?:name|parameters)$)")
_RENAMED = {
    "include": "logprobs",
    "input": "messages",
    "text.verbosity": "verbosity",
    "text.format.type": "response_format.type",
    "text.format": "response_format.json_schema",
    "reasoning.effort": "reasoning_effort",
    "max_output_tokens": "max_completion_tokens",
}
"""What a field of a turn's request is called here; the first that fits counts."""

_REPLACED = {"functions": "tools", "function_call": "tool_choice"}


def chat_request_cooperatively(text: JsonText, passed_over: PassedOver | None = None) -> Steps[ChatTurn]:
    """Parse and check a request body, and translate it.

    What is not known in it is named to `passed_over`; without that it is refused. The turn's request is that of a
    Responses request whose `input` list is the whole history and whose conversation is not named.

    Raises:
        InvalidRequest: `param` names the exact field, such as `messages[2].content[0].image_url.url`.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    chat = yield from body_cooperatively(ChatRequest, text, "messages", _MESSAGES, passed_over)
    _check_unsupported(chat)
    _note_names(chat, passed_over)
    placed = yield from _items_cooperatively(chat)
    request = _turn_request(chat, placed).with_collector(passed_over)
    turn = ChatTurn(chat, request, tuple(each.path for each in placed))
    try:
        check_request(turn.request)
    except InvalidRequest as error:
        turn.name_as_given(error)
        raise
    return replace(turn, request=_in_lanes(turn.request, chat.n or 1))


def _in_lanes(request: TurnRequest, count: int) -> TurnRequest:
    """Let a model answer in as many lanes as there are to be choices; "" stands for the default one."""
    return request.model_copy(update={"models": [request.model or ""] * count}) if count > 1 else request


def _note_names(chat: ChatRequest, passed_over: PassedOver | None) -> None:
    """Note the names of who speaks, which no model is sent."""
    for number, message in enumerate(chat.messages):
        if passed_over is not None and message.name is not None:
            passed_over.leave_out(f"messages[{number}].name")


def _check_unsupported(chat: ChatRequest) -> None:
    for field, successor in _REPLACED.items():
        if getattr(chat, field) is not None:
            message = f"This field is deprecated and not supported; use '{successor}'."
            raise UnsupportedValue(message, param=field)
    if chat.top_logprobs and not chat.logprobs:
        raise InvalidRequest(
            "These come with 'logprobs': true; give that, or leave this field out.", param="top_logprobs"
        )
    if (chat.n or 1) > 1 and chat.if_running is not None:
        message = "Several choices do not wait for a running turn; leave this field out, or ask for one."
        raise InvalidRequest(message, param="if_running")
    limits = {chat.max_tokens, chat.max_completion_tokens} - {None}
    if len(limits) > 1:
        message = "'max_tokens' and 'max_completion_tokens' differ; give 'max_completion_tokens' alone."
        raise InvalidRequest(message, param="max_tokens")


def _items_cooperatively(chat: ChatRequest) -> Steps[list[PlacedItem]]:
    placed: list[PlacedItem] = []
    for place, message in enumerate(chat.messages):
        if place % STEP_WEIGHT == STEP_WEIGHT - 1:
            yield
        placed += items_of_message(message, f"messages[{place}]")
    custom = {each.item.call_id for each in placed if isinstance(each.item, CustomToolCallItem)}
    return [_of_custom_tool(each) if getattr(each.item, "call_id", None) in custom else each for each in placed]


def _of_custom_tool(placed: PlacedItem) -> PlacedItem:
    """Let the result of a custom tool's call say that it is one, which no message of the role `tool` does."""
    if not isinstance(placed.item, FunctionCallOutputItem):
        return placed
    return PlacedItem(placed.item.model_copy(update={"type": "custom_tool_call_output"}), placed.path)


def _turn_request(chat: ChatRequest, placed: list[PlacedItem]) -> TurnRequest:
    streamed, effort, limit = chat.stream_options, chat.reasoning_effort, chat.max_completion_tokens or chat.max_tokens
    return turn_of(
        {
            **{name: getattr(chat, name) for name in TurnOptions.model_fields},
            "stream_options": None if streamed is None else StreamOptions(on_disconnect=streamed.on_disconnect),
            "input": [each.item for each in placed],
            "tools": None if chat.tools is None else [_tool(tool) for tool in chat.tools],
            "tool_choice": _choice(chat),
            "max_output_tokens": limit,
            "text": TextOptions(format=_format(chat), verbosity=chat.verbosity),
            "include": [OUTPUT_LOGPROBS] if chat.logprobs else None,
            "reasoning": None if effort is None else ReasoningOptions(effort=effort),
            "extra_parameters": _extra(chat),
        }
    )


def _extra(chat: ChatRequest) -> JsonObject | None:
    given = chat.extra_parameters or {}
    return (given if chat.logit_bias is None else {**given, "logit_bias": chat.logit_bias}) or None


def _tool(
    tool: ChatFunctionTool | ChatCustomTool | FileSearchTool | OtherKind,
) -> FunctionTool | CustomTool | FileSearchTool | OtherKind:
    if isinstance(tool, ChatCustomTool):
        return _custom_tool(tool.custom)
    if not isinstance(tool, ChatFunctionTool):
        return tool
    function = tool.function
    return FunctionTool(
        type="function",
        name=function.name,
        description=function.description,
        parameters=function.parameters,
        strict=function.strict,
    )


def _custom_tool(tool: DescribedCustomTool) -> CustomTool:
    shape = tool.format
    if isinstance(shape, ChatGrammarInput):
        shape = GrammarInput(type="grammar", syntax=shape.grammar.syntax, definition=shape.grammar.definition)
    return CustomTool(type="custom", name=tool.name, description=tool.description, format=shape)


def _choice(chat: ChatRequest) -> Literal["auto", "none", "required"] | FunctionChoice | FileSearchChoice | None:
    if isinstance(chat.tool_choice, ChatFunctionChoice):
        return FunctionChoice(type="function", name=chat.tool_choice.function.name)
    if isinstance(chat.tool_choice, ChatCustomChoice):
        return FunctionChoice(type="custom", name=chat.tool_choice.custom.name)
    return chat.tool_choice


def _format(chat: ChatRequest) -> PlainFormat | JsonSchemaFormat | None:
    if not isinstance(chat.response_format, ChatSchemaFormat):
        return chat.response_format
    given = chat.response_format.json_schema
    return JsonSchemaFormat(
        type="json_schema",
        name=given.name,
        schema=given.schema_,
        description=given.description,
        strict=given.strict,
    )


def _find_given_name(param: str | None, paths: tuple[str, ...], kinds: list[str]) -> str | None:
    """Return what a field is called here; `kinds` are the types of the tool choice and of the tools."""
    if param is None:
        return None
    item = _INPUT_ITEM.fullmatch(param)
    if item is not None and int(item[1]) < len(paths):
        path = paths[int(item[1])]
        if file := _FILE_PART.fullmatch(item[2]):
            return f"{path}.content{file[1]}{_FILE_FIELDS.get(file[2], f'.{file[2]}')}"
        call_id = ".id" if path.endswith("]") and ".tool_calls[" in path else ".tool_call_id"
        return path + (call_id if item[2] == ".call_id" else item[2])
    for theirs, ours in _RENAMED.items():
        if param == theirs or param.startswith(f"{theirs}."):
            return ours + param.removeprefix(theirs)
    return _LANE.sub("model", _OF_TOOL.sub(lambda tool: f"{tool[0]}.{kinds[int(tool[1] or -1) + 1]}", param))
