"""Input items of OpenAI's Responses API: what a caller may send as `input` or as conversation items."""

from functools import cache
from typing import Annotated, ClassVar, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from backend.conversations.domain.images import check_image_url
from backend.conversations.domain.passed_over import OR_OTHER_KIND, passes_over
from shared.ids import IdPrefix
from shared.models.messages import ProviderReasoning
from shared.models.values import JsonValue
from shared.prompts.custom_tools import arguments_of

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Detail = Literal["low", "high", "auto", "original"]
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
CallId = Annotated[str, Field(min_length=1, max_length=256)]


class Given(BaseModel):
    """The base of input models: values are not converted to other types, and unknown fields are refused.

    Where a request may hold more than is known here (`PassedOver`), unknown fields are named and left out, but in
    `is_strict` models: what these say narrows what a turn may use. A model with a `rest` has a field of that name, into
    which all unknown ones go, whoever may take them.
    A field that is null is a field left out, known or not: clients send objects back with each field that they know.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    is_strict: ClassVar[bool] = False
    rest: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: object, validation: ValidationInfo) -> object:
        if not isinstance(given, dict):
            return given
        fields = cls._without_nulls(cast("dict[str, object]", given))
        noted = passes_over(validation)
        if (noted is None and not cls.rest) or cls.is_strict or fields.keys() <= (known := _fields_of(cls)):
            return fields
        unknown = {name: value for name, value in fields.items() if name not in known}
        kept = {name: value for name, value in fields.items() if name in known}
        if cls.rest:
            given_rest = kept.get(cls.rest, {})
            is_object = isinstance(given_rest, dict)
            rest = {**unknown, **cast("dict[str, object]", given_rest)} if is_object else given_rest
            return {**kept, cls.rest: rest}
        if noted is not None:
            noted.members(cast(object, given), tuple(unknown))
        return kept

    @classmethod
    def _without_nulls(cls, fields: dict[str, object]) -> dict[str, object]:
        if None not in fields.values():
            return fields
        # The error about the null of a field that must be given tells what it should be.
        needed = {name: None for name, field in cls.model_fields.items() if name in fields and field.is_required()}
        return {**needed, **{name: value for name, value in fields.items() if value is not None}}


@cache
def _fields_of(kind: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in kind.model_fields.items())


class InputTextPart(Given):
    """Text inside a message of a user, or inside instructions."""

    type: Literal["input_text"]
    text: str
    prompt_cache_breakpoint: JsonValue = None


class InputImagePart(Given):
    """An image inside a user's message."""

    type: Literal["input_image"]
    image_url: str
    detail: Detail | None = "auto"
    file_id: None = None
    prompt_cache_breakpoint: JsonValue = None

    @field_validator("image_url")
    @classmethod
    def _is_reachable_or_inline(cls, url: str) -> str:
        check_image_url(url)
        return url


def _refuse_address(address: object) -> object:
    """Refuse an address of a file."""
    if address is not None:
        raise PydanticCustomError("file_url", "Files are not fetched: give the file itself in 'file_data'")
    return address


class InputFilePart(Given):
    """A document inside a user's message: its bytes in base64, as a data URL or bare, or the id of a stored file."""

    type: Literal["input_file"]
    filename: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    file_data: str | None = None
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    file_url: Annotated[None, BeforeValidator(_refuse_address)] = None
    detail: Literal["auto", "low", "high"] | None = None
    prompt_cache_breakpoint: JsonValue = None


class AttachedFilePart(InputFilePart):
    """A document that a turn's input holds, without its bytes; no client can send one.

    `digest` is a hash over the bytes as the client wrote them, or over the id.
    """

    digest: str


class OutputTextPart(Given):
    """Text of an assistant's message."""

    type: Literal["output_text"]
    text: str
    annotations: list[JsonValue] | None = None
    logprobs: list[JsonValue] | None = None
    parsed: JsonValue = None


class RefusalPart(Given):
    """A refusal in an assistant's message."""

    type: Literal["refusal"]
    refusal: str


def text_or_list_of(kind: str) -> Discriminator:
    """Return a discriminator of a union: the tag of a string is "text", that of a list is `kind`."""

    def tag(value: object) -> str | None:
        if isinstance(value, str):
            return "text"
        return kind if isinstance(value, list) else None

    return Discriminator(
        tag,
        custom_error_type=f"text_or_{kind}",
        custom_error_message=f"Input should be a string or a list of {kind}",
    )


def _refuse_unknown_role(role: object) -> object:
    """Raise an error that names all roles; a message of an unknown role is validated as a user's message."""
    if role != "user":
        raise PydanticCustomError("unknown_role", "Input should be 'user', 'assistant', 'system' or 'developer'")
    return role


MAX_PARTS = 1000
TEXT_OR_PARTS = text_or_list_of("parts")
InputPart = Annotated[InputTextPart | InputImagePart | InputFilePart, Field(discriminator="type")]
OutputPart = Annotated[OutputTextPart | RefusalPart, Field(discriminator="type")]
PARTS = Field(min_length=1, max_length=MAX_PARTS, fail_fast=True)
SystemParts = Annotated[list[Annotated[InputTextPart, Field()]], PARTS]
UserContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[InputPart], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]
SystemContent = Annotated[Annotated[str, Tag("text")] | Annotated[SystemParts, Tag("parts")], TEXT_OR_PARTS]
AssistantContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[OutputPart], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]
ToolOutput = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[InputPart], PARTS, Tag("parts")],
    TEXT_OR_PARTS,
]


class _Said(Given):
    """What a model has said, and which one of several (`lanes` of a response); a client may send that back."""

    model: str | None = None
    response_id: str | None = None


class _Message(Given):
    type: Literal["message"] = "message"
    id: str | None = None
    status: ItemStatus | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class UserItem(_Message):
    """A message of a user; `author` stands in items of shared conversations, and has no effect when it is sent back."""

    role: Annotated[Literal["user"], BeforeValidator(_refuse_unknown_role)]
    content: UserContent
    author: Annotated[str, Field(max_length=256)] | None = None


class SystemItem(_Message):
    """Instructions in the form of a message."""

    role: Literal["system", "developer"]
    content: SystemContent


class AssistantItem(_Message, _Said):
    """A message of a model."""

    role: Literal["assistant"]
    content: AssistantContent


class ReasonedItem(AssistantItem):
    """A message of a model with its reasoning, which chat completions alone have in one; no item of a client is one."""

    reasoning: ProviderReasoning


class _Call(_Said):
    call_id: CallId
    name: FunctionName
    id: str | None = None
    status: ItemStatus | None = None
    namespace: JsonValue = None
    caller: JsonValue = None


class FunctionCallItem(_Call):
    """A model's call of a function of the client."""

    type: Literal["function_call"]
    arguments: str
    parsed_arguments: JsonValue = None


class CustomToolCallItem(_Call):
    """A model's call of a custom tool of the client."""

    type: Literal["custom_tool_call"]
    input: str

    @property
    def arguments(self) -> str:
        """The arguments by which a model is shown the call."""
        return arguments_of(self.input)


class FunctionCallOutputItem(Given):
    """The result of a function, or of a custom tool, that the client ran."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: CallId
    output: ToolOutput
    id: str | None = None
    status: ItemStatus | None = None
    name: str | None = None
    namespace: JsonValue = None
    caller: JsonValue = None


class ReasoningItem(_Said):
    """Reasoning of a model that the client sends back; it is accepted and left out of the prompt."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: list[JsonValue] = []
    content: list[JsonValue] | None = None
    encrypted_content: str | None = None
    status: ItemStatus | None = None


class FileSearchItem(_Said):
    """A file search of an earlier response that the client sends back; it is accepted and left out of the prompt."""

    type: Literal["file_search_call"]
    id: str | None = None
    queries: Annotated[list[str], Field(fail_fast=True)] = []
    status: str | None = None
    results: list[JsonValue] | None = None


class CompactionItem(Given):
    """A compaction that the client sends back: a summary that it carries, or one that this server keeps.

    What is kept here stands in the log of its conversation, and the item that tells of it names itself alone.
    """

    type: Literal["compaction"]
    id: str | None = None
    encrypted_content: str | None = None
    created_by: str | None = None

    @property
    def carries_summary(self) -> bool:
        """Whether the item says more than that a part was left out."""
        return not (self.encrypted_content or f"{IdPrefix.COMPACTION}_").startswith(f"{IdPrefix.COMPACTION}_")


class McpCallItem(Given):
    """A call of a tool server in an earlier response that the client sends back; it is left out of the prompt."""

    type: Literal["mcp_call"]
    id: str | None = None
    server_label: str | None = None
    name: str | None = None
    arguments: str | None = None
    approval_request_id: str | None = None
    output: str | None = None
    error: JsonValue = None
    status: str | None = None


class ItemReference(Given):
    """A stored item of the caller, named by its id; the item takes its place before the input is read."""

    type: Literal["item_reference"]
    id: Annotated[str, Field(min_length=1, max_length=256)]


_TAG_OF_ROLE = {"system": "system message", "developer": "system message", "assistant": "assistant message"}


def _tag_of_item(value: JsonValue) -> str | None:
    if not isinstance(value, dict):
        return "user message"
    kind = value.get("type")
    if kind is not None and kind != "message":
        return kind if isinstance(kind, str) else None
    return _TAG_OF_ROLE.get(str(value.get("role")), "user message")


InputItem = Annotated[
    Annotated[UserItem, Tag("user message")]
    | Annotated[SystemItem, Tag("system message")]
    | Annotated[AssistantItem, Tag("assistant message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[CustomToolCallItem, Tag("custom_tool_call")]
    | Annotated[FunctionCallOutputItem, Tag("function_call_output")]
    | Annotated[FunctionCallOutputItem, Tag("custom_tool_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[FileSearchItem, Tag("file_search_call")]
    | Annotated[CompactionItem, Tag("compaction")]
    | Annotated[McpCallItem, Tag("mcp_call")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(_tag_of_item),
    OR_OTHER_KIND,
]
MAX_ITEMS = 2_000
"""The maximum in one list: all that is done with an item takes about 50 µs, and holds the event loop in parts."""

InputItems = Annotated[list[InputItem], Field(max_length=MAX_ITEMS, fail_fast=True)]
