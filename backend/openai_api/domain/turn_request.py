"""The body of `POST /v1/responses`, as OpenAI's API defines it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Discriminator, Field, Tag

from backend.conversations.domain.input_items import FunctionName, Given, InputItems, text_or_list_of
from backend.conversations.domain.item_bodies import FILE_SEARCH_RESULTS, OUTPUT_LOGPROBS, Include
from backend.conversations.domain.item_steps import INPUT_ITEM, body_cooperatively
from backend.conversations.domain.passed_over import MAX_PAIRS, OR_LEFT_OUT, OR_OTHER_KIND, NotingRequest, PassedOver
from backend.foundation.domain.json_objects import JsonText, Steps
from backend.knowledge.domain.tickets import SearchOptions, strictest
from backend.openai_api.domain.client_left import OnDisconnect, StreamOptions
from backend.openai_api.domain.client_tools import CustomTool, FunctionChoice, FunctionTool, check_functions
from backend.openai_api.domain.mcp_tool import McpTool
from backend.search.domain.filters import Filter, check_filter
from shared.errors import InvalidRequest
from shared.models.values import Int64, JsonObject

MAX_MODELS = 3
"""Each model of a request takes a place for turns, and pays for the whole prompt."""

ModelName = Annotated[str, Field(min_length=1, max_length=256)]
SeveralModels = Annotated[list[ModelName], Field(min_length=1, max_length=MAX_MODELS, fail_fast=True)]


def check_models(
    model: str | None, models: Sequence[str] | None, if_running: str | None = None
) -> Mapping[str, object]:
    """Return the fields `model` and `models` of a request that go together; a single one of `models` is the `model`.

    Raises:
        InvalidRequest: a model is named twice, `model` is not the first of `models`, or several would have to wait for
            a running turn; `param` names the place.
    """
    if not models:
        return {}
    for place, name in enumerate(models):
        if name in models[:place]:
            message = f"The model '{name}' is named twice; name each model once."
            raise InvalidRequest(message, param=f"models[{place}]")
    if len(models) > 1 and if_running is not None:
        message = "Several models do not wait for a running turn; leave this field out, or name one model."
        raise InvalidRequest(message, param="if_running")
    if model not in (None, models[0]):
        message = f"Leave this field out, or give '{models[0]}', the first of 'models'."
        raise InvalidRequest(message, param="model")
    return {"model": models[0], "models": list(models) if len(models) > 1 else None}


Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=MAX_PAIRS)
]
Key = Annotated[str, Field(max_length=64)]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]
CacheRetention = Literal["in_memory", "in-memory", "24h"]
StopSequence = Annotated[str, Field(min_length=1, max_length=256)]
StopSequences = Annotated[
    Annotated[StopSequence, Tag("text")]
    | Annotated[list[StopSequence], Field(max_length=4, fail_fast=True), Tag("strings")],
    text_or_list_of("strings"),
]
OutputTokens = Annotated[int, Field(ge=1, le=10_000_000)]
ToolCalls = Annotated[int, Field(ge=1, le=1_000_000)]
BaseId = Annotated[str, Field(min_length=1, max_length=128)]
MAX_TOOLS = 256
MAX_BASES = 100
InputBody = Annotated[
    Annotated[str, Tag("text")] | Annotated[InputItems, Field(min_length=1), Tag("items")],
    text_or_list_of("items"),
]


class RankingOptions(Given):
    """How results are ranked; there is one ranker, and it knows words only."""

    is_strict: ClassVar[bool] = True
    ranker: Literal["auto", "default-2024-11-15"] | None = None
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    hybrid_search: None = None


class FileSearchTool(Given):
    """Knowledge bases to search, by id."""

    is_strict: ClassVar[bool] = True
    type: Literal["file_search"]
    vector_store_ids: list[BaseId] = Field(min_length=1, max_length=MAX_BASES)
    max_num_results: Annotated[int, Field(ge=1, le=50)] | None = None
    filters: Filter | None = None
    ranking_options: RankingOptions | None = None

    @property
    def min_score(self) -> float | None:
        """The score below which passages are left out."""
        return self.ranking_options.score_threshold if self.ranking_options is not None else None


class FileSearchChoice(Given):
    """The knowledge bases must be searched."""

    type: Literal["file_search"]


class PlainFormat(Given):
    """Text, or any JSON object."""

    type: Literal["text", "json_object"]


class JsonSchemaFormat(Given):
    """JSON that fits a schema."""

    type: Literal["json_schema"]
    name: FunctionName
    schema_: JsonObject = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextOptions(Given):
    """How the answer's text is shaped."""

    format: Annotated[PlainFormat | JsonSchemaFormat, Field(discriminator="type")] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningOptions(Given):
    """How long a reasoning model thinks."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class ConversationRef(Given):
    """A conversation named by an object."""

    id: str


def _tag_of_choice(value: object) -> str | None:
    if not isinstance(value, dict):
        return "(mode)"
    fields = cast(JsonObject, value)
    kind = fields.get("type")
    return kind if isinstance(kind, str) else None


def _tag_of_conversation(value: object) -> str:
    return "object" if isinstance(value, dict) else "id"


Tool = Annotated[FunctionTool | CustomTool | FileSearchTool | McpTool, Field(discriminator="type")]
ToolChoiceBody = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("(mode)")]
    | Annotated[FunctionChoice, Tag("function")]
    | Annotated[FunctionChoice, Tag("custom")]
    | Annotated[FileSearchChoice, Tag("file_search")],
    Discriminator(_tag_of_choice),
]


class Sampling(Given):
    """How a model chooses its words, and when it ends; absent and null mean the same.

    `seed` and `stop` are Chat Completions' own in OpenAI's API; here a turn takes them through either API.
    """

    parallel_tool_calls: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    seed: Int64 | None = None
    stop: StopSequences | None = None


class TurnOptions(Sampling):
    """What Responses and Chat Completions name alike; absent and null mean the same.

    `extra_parameters` are the members that neither knows: the model's provider may take them.
    """

    rest: ClassVar[str] = "extra_parameters"
    model: ModelName | None = None
    stream: bool | None = None
    store: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    metadata: Metadata | None = None
    service_tier: ServiceTier | None = None
    user: str | None = None
    safety_identifier: Key | None = None
    prompt_cache_key: Key | None = None
    prompt_cache_retention: CacheRetention | None = None
    prompt_cache_options: JsonObject | None = None
    moderation: None = None
    if_running: Literal["queue", "cancel", "steer"] | None = None
    extra_parameters: JsonObject | None = None


class TurnFields(TurnOptions):
    """What a turn is asked for, besides its input; `tools: []` unbinds all, where null means nothing."""

    instructions: str | None = None
    conversation: (
        Annotated[
            Annotated[str, Tag("id")] | Annotated[ConversationRef, Tag("object")], Discriminator(_tag_of_conversation)
        ]
        | None
    ) = None
    previous_response_id: str | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    tools: Annotated[list[Annotated[Tool, OR_OTHER_KIND]], Field(max_length=MAX_TOOLS, fail_fast=True)] | None = None
    tool_choice: Annotated[ToolChoiceBody, OR_LEFT_OUT] | None = None
    max_output_tokens: OutputTokens | None = None
    max_tool_calls: ToolCalls | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include: Annotated[list[Include], Field(max_length=64, fail_fast=True)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    prompt: None = None
    context_management: None = None


class TurnRequest(TurnFields, NotingRequest):
    """One turn as a caller asks for it; absent and null mean the same, except that `tools: []` unbinds all.

    With `models`, which are then several, each of them answers by itself. The choices of a chat completion are lanes of
    one model, whose name then stands there as often.
    """

    input: InputBody
    models: SeveralModels | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the turn leaves a response and a log behind; OpenAI's default is yes."""
        return self.store is not False

    @property
    def stop_sequences(self) -> tuple[str, ...]:
        """The texts before the first of which the answer ends."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def is_background(self) -> bool:
        """Whether the request returns before the turn has ended."""
        return self.background is True

    def ends_with_client(self, default: OnDisconnect) -> bool:
        """Say whether the turn ends when its client closes the connection; `default` is that of streams."""
        given = self.stream_options.on_disconnect if self.stream_options is not None else None
        is_to_cancel = self.stream is True and (given or default) == "cancel"
        return not self.is_background and (not self.is_stored or is_to_cancel)

    @property
    def conversation_id(self) -> str | None:
        """The conversation to continue, if the caller names one."""
        return self.conversation.id if isinstance(self.conversation, ConversationRef) else self.conversation

    @property
    def wants_results(self) -> bool:
        """Whether search results are to be shown."""
        return FILE_SEARCH_RESULTS in (self.include or ())

    @property
    def asked_logprobs(self) -> int | None:
        """How many alternatives of each token are to come with its log probability; None where none is to be told."""
        is_asked = bool(self.top_logprobs) or OUTPUT_LOGPROBS in (self.include or ())
        return (self.top_logprobs or 0) if is_asked else None

    @property
    def file_searches(self) -> tuple[FileSearchTool, ...]:
        """The file search tools, as given."""
        return file_searches_in(self.tools or ())

    @property
    def search(self) -> SearchOptions:
        """The bounds of search results."""
        return search_options(self.file_searches)


def file_searches_in(tools: Sequence[Tool]) -> tuple[FileSearchTool, ...]:
    """Return the file search tools among tools."""
    return tuple(tool for tool in tools if isinstance(tool, FileSearchTool))


def search_options(searches: Sequence[FileSearchTool]) -> SearchOptions:
    """Return the bounds of search results: one search reads all bases, so the strictest bounds given hold."""
    return strictest(
        SearchOptions(max_results=each.max_num_results, min_score=each.min_score, filters=each.filters)
        for each in searches
    )


def turn_request_cooperatively(text: JsonText, passed_over: PassedOver | None = None) -> Steps[TurnRequest]:
    """Parse and check a request body; what is not known in it is named to `passed_over`, without that refused.

    Raises:
        InvalidRequest: `param` names the exact field, such as `input[2].content[0].image_url`.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    request = yield from body_cooperatively(TurnRequest, text, "input", INPUT_ITEM, passed_over)
    return check_request(request.with_collector(passed_over))


def turn_of(values: Mapping[str, object]) -> TurnRequest:
    """Return the turn whose fields have these values, which were checked with the request that they come from."""
    return TurnRequest(input="").model_copy(update=values)


def check_request(request: TurnRequest) -> TurnRequest:
    """Return a request whose fields go together.

    Raises:
        InvalidRequest: some do not; `param` names one of them.
    """
    _check_combinations(request)
    check_functions(request.tools or ())
    check_search_filters(request.tools or ())
    changed = check_models(request.model, request.models, request.if_running)
    return request.model_copy(update=changed) if changed else request


def check_search_filters(tools: Sequence[Tool]) -> None:
    """Check the filters of file search tools.

    Raises:
        InvalidRequest: one is too deep or too large, or all together are; `param` names it.
    """
    for place, tool in enumerate(tools):
        if isinstance(tool, FileSearchTool) and tool.filters is not None:
            check_filter(tool.filters, f"tools[{place}].filters")
    joined = search_options(file_searches_in(tools)).filters
    if joined is not None:
        check_filter(joined, "tools")


def _check_combinations(request: TurnRequest) -> None:
    if request.conversation is not None and request.previous_response_id is not None:
        raise InvalidRequest(
            "Give either 'conversation' or 'previous_response_id', not both.", param="previous_response_id"
        )
    if not request.is_stored and request.is_background:
        raise InvalidRequest(
            "A turn in the background must be stored; leave this field out, or give true.", param="store"
        )
    if not request.is_stored and request.conversation is not None:
        raise InvalidRequest(
            "A turn in a conversation must be stored; leave this field out, or give true.", param="store"
        )
    if not request.is_stored and request.if_running is not None:
        raise InvalidRequest("A turn that waits must be stored; leave this field out, or give true.", param="store")
