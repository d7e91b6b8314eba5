"""Hypothesis strategies for the values of the contract."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from shared.models.events import (
    CitationAdded,
    Cost,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchResult,
    SearchStarted,
    ServedCallFinished,
    ServedCallStarted,
    TextDelta,
    TextLogprobs,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.execution import (
    AccessMode,
    DynamicBlock,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    NamedToolChoice,
    Purpose,
    ReasoningEffort,
    ServedTool,
    ToolChoice,
    ToolDefinition,
    TurnLimits,
    User,
    Verbosity,
)
from shared.models.messages import (
    AssistantMessage,
    Content,
    HistoryMessage,
    ImageDetail,
    ImagePart,
    OpaqueItem,
    Part,
    ProviderReasoning,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    TurnMessage,
    UserMessage,
)
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
from shared.models.values import JsonObject, JsonValue, Place

MAX_INT64 = 2**63 - 1

texts = st.text(max_size=12)
floats = st.floats(allow_nan=False, allow_infinity=False)
# Named, because the list of all zones is read from disk while examples are drawn, which Hypothesis calls flaky.
zones = st.sampled_from(
    ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca")
)
instants = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones.map(ZoneInfo))  # noqa: DTZ001
counts = st.integers(0, MAX_INT64)


def json_values() -> st.SearchStrategy[JsonValue]:
    """Any JSON value; whole numbers of any size."""
    scalars = st.none() | st.booleans() | st.integers() | floats | texts
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )


def json_objects() -> st.SearchStrategy[JsonObject]:
    """Any JSON object."""
    return st.dictionaries(texts, json_values(), max_size=3)


def parts() -> st.SearchStrategy[Part]:
    """A part of a message."""
    images = st.builds(ImagePart, url=texts, detail=st.sampled_from(ImageDetail))
    return st.builds(TextPart, text=texts) | images


def contents() -> st.SearchStrategy[Content]:
    """The content of a message: text, or parts, both perhaps empty."""
    return texts | st.lists(parts(), max_size=3).map(tuple)


def tool_calls() -> st.SearchStrategy[ToolCall]:
    """A tool call, its arguments no JSON."""
    return st.builds(ToolCall, call_id=texts, name=texts, arguments=texts)


def assistant_messages() -> st.SearchStrategy[AssistantMessage]:
    """An assistant message with or without text and calls."""
    return st.builds(
        AssistantMessage,
        text=texts,
        tool_calls=st.lists(tool_calls(), max_size=2).map(tuple),
        reasoning=st.none() | provider_reasoning(),
    )


def provider_reasoning() -> st.SearchStrategy[ProviderReasoning]:
    """What a provider wants back, at places that need not exist in the message."""
    items = st.builds(OpaqueItem, content=texts, after_characters=counts, after_calls=counts)
    return st.builds(ProviderReasoning, api=texts, items=st.lists(items, max_size=2).map(tuple))


def tool_messages() -> st.SearchStrategy[ToolMessage]:
    """A tool's result."""
    return st.builds(ToolMessage, call_id=texts, content=contents())


@st.composite
def added_exchanges(draw: st.DrawFn) -> list[TurnMessage]:
    """The messages that a turn has behind it: none, or some of which the last one is no answer of the model."""
    behind = tool_messages() | st.builds(UserMessage, content=contents())
    messages = draw(st.lists(assistant_messages() | behind, max_size=3))
    return [*messages, draw(behind)] if messages else []


def history_messages() -> st.SearchStrategy[HistoryMessage]:
    """A message of the log, in no order that makes sense."""
    system = st.builds(SystemMessage, content=texts)
    return st.builds(UserMessage, content=contents()) | assistant_messages() | tool_messages() | system


def model_parameters() -> st.SearchStrategy[ModelParameters]:
    """Every combination of parameters."""
    named = st.builds(NamedToolChoice, name=texts)
    choices: st.SearchStrategy[ToolChoice] = st.sampled_from(("auto", "none", "required"))
    return st.builds(
        ModelParameters,
        temperature=st.none() | floats,
        top_p=st.none() | floats,
        presence_penalty=st.none() | floats,
        frequency_penalty=st.none() | floats,
        max_output_tokens=st.none() | st.integers(-MAX_INT64 - 1, MAX_INT64),
        reasoning_effort=st.none() | st.sampled_from(ReasoningEffort),
        text_format=st.none() | json_objects(),
        verbosity=st.none() | st.sampled_from(Verbosity),
        tool_choice=choices | named,
        parallel_tool_calls=st.booleans(),
        seed=st.none() | st.integers(-MAX_INT64 - 1, MAX_INT64),
        stop=st.lists(texts, max_size=2).map(tuple),
        top_logprobs=st.none() | st.integers(0, 20),
    )


@st.composite
def knowledge(draw: st.DrawFn) -> Knowledge:
    """Bases with their modes, and a mode of the whole that is as strict."""
    base = st.builds(KnowledgeBaseRef, id=texts, name=texts, access_mode=st.sampled_from(AccessMode))
    bases = tuple(draw(st.lists(base, max_size=3)))
    restricted = any(one.access_mode is AccessMode.RESTRICTED for one in bases)
    mode = AccessMode.RESTRICTED if restricted else draw(st.sampled_from(AccessMode))
    user_words = draw(texts) if mode is AccessMode.RESTRICTED else ""
    return Knowledge(bases=bases, access_mode=mode, ticket=draw(texts), user_words=user_words)


def tool_definitions() -> st.SearchStrategy[ToolDefinition]:
    """A function offered to the model."""
    return st.builds(
        ToolDefinition,
        name=texts,
        description=st.none() | texts,
        parameters=st.none() | json_objects(),
        strict=st.none() | st.booleans(),
    )


def open_served_tools() -> st.SearchStrategy[ServedTool]:
    """A tool of a tool server, as a conversation has fixed it."""
    return st.builds(
        ServedTool, definition=tool_definitions(), server=texts, tool=texts, accepts_restricted=st.booleans()
    )


def offered_tools() -> st.SearchStrategy[OfferedTools]:
    """All that chat_shell offers of tool servers and skills."""
    tools = st.lists(open_served_tools(), max_size=2).map(tuple)
    servers = st.lists(st.builds(ServerTools, server=texts, is_known=st.booleans(), tools=tools), max_size=2)
    skills = st.lists(st.builds(SkillCard, name=texts, description=texts, accepts_restricted=st.booleans()), max_size=2)
    return st.builds(OfferedTools, servers=servers.map(tuple), skills=skills.map(tuple))


@st.composite
def execution_requests(draw: st.DrawFn) -> ExecutionRequest:
    """Any request that is valid at all."""
    history = tuple(draw(st.lists(history_messages(), max_size=5)))
    may_go_on = bool(history)
    tools = draw(st.lists(tool_definitions(), max_size=3, unique_by=lambda tool: tool.name))
    served = draw(st.lists(open_served_tools(), max_size=2, unique_by=lambda tool: tool.definition.name))
    names = {tool.name for tool in tools}
    return ExecutionRequest(
        request_id=draw(texts),
        conversation_id=draw(texts),
        turn_id=draw(texts),
        epoch=draw(counts),
        user=draw(st.builds(User, id=texts, tenant=texts, display_name=texts)),
        model=draw(texts),
        parameters=draw(model_parameters()),
        system_prompt=draw(texts),
        history=history,
        kb_meta_prompt=draw(texts),
        dynamic_blocks=tuple(draw(st.lists(st.builds(DynamicBlock, name=texts, text=texts), max_size=2))),
        prompt=draw(contents() | st.none() if may_go_on else contents()),
        sent_at=draw(instants),
        time_zone=draw(texts),
        knowledge=draw(knowledge()),
        tools=tuple(tools),
        limits=draw(
            st.builds(
                TurnLimits,
                max_knowledge_calls=counts,
                max_model_calls=st.none() | st.integers(1, MAX_INT64),
                hand_back_tokens=st.none() | st.integers(1, MAX_INT64),
            )
        ),
        cache_key=draw(texts),
        deadline=draw(instants),
        added=tuple(draw(added_exchanges())),
        reminder=draw(texts),
        purpose=draw(st.sampled_from(Purpose)),
        reads_files=draw(st.booleans()),
        served_tools=tuple(tool for tool in served if tool.definition.name not in names),
    )


def usages() -> st.SearchStrategy[Usage]:
    """Token counts, each perhaps unknown."""
    known = st.none() | counts
    return st.builds(
        Usage,
        input_tokens=known,
        cached_tokens=known,
        cache_write_tokens=known,
        output_tokens=known,
        reasoning_tokens=known,
    )


def costs() -> st.SearchStrategy[Cost]:
    """What a call may have cost."""
    return st.builds(Cost, currency=texts, amount=floats, saved=floats)


def error_reports() -> st.SearchStrategy[ErrorReport]:
    """A failure as it is shown."""
    return st.builds(
        ErrorReport, type=texts, code=texts, message=texts, param=st.none() | texts, retryable=st.booleans()
    )


def places() -> st.SearchStrategy[Place]:
    """Where a passage may stand."""
    numbers = st.none() | st.integers(1, 9)
    rows = st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9))
    sheets = st.none() | texts.filter(bool)
    return st.builds(Place, page=numbers, last_page=numbers, slide=numbers, sheet=sheets, rows=rows)


other_names = st.lists(texts, max_size=2).map(tuple)


def search_results() -> st.SearchStrategy[SearchResult]:
    """A hit."""
    values = st.booleans() | st.integers(-(2**53), 2**53) | floats | texts
    attributes = st.dictionaries(texts, values, max_size=3)
    return st.builds(
        SearchResult,
        number=counts,
        file_id=texts,
        filename=texts,
        score=floats,
        text=texts,
        attributes=attributes,
        place=st.none() | places(),
        other_names=other_names,
    )


def execution_events() -> st.SearchStrategy[ExecutionEvent]:
    """Any event."""
    reasons = st.sampled_from(FinishReason)
    added = st.lists(assistant_messages() | tool_messages(), max_size=3).map(tuple)
    results = st.lists(search_results(), max_size=2).map(tuple)
    return st.one_of(
        st.builds(ModelCallStarted, call=counts, reminder=texts),
        st.builds(TextDelta, text=texts),
        st.builds(TextLogprobs, tokens=texts),
        st.builds(ReasoningDelta, text=texts),
        st.builds(RefusalDelta, text=texts),
        st.builds(
            CitationAdded,
            number=counts,
            file_id=texts,
            filename=texts,
            index=counts,
            place=st.none() | places(),
            other_names=other_names,
        ),
        st.builds(ModelCallFinished, call=counts, finish_reason=reasons, usage=usages(), cost=st.none() | costs()),
        st.builds(SearchStarted, call_id=texts, queries=st.lists(texts, max_size=2).map(tuple)),
        st.builds(SearchFinished, call_id=texts, failed=st.booleans(), results=results),
        st.builds(FunctionCallDelta, call_id=texts, name=texts, arguments=texts),
        st.builds(FunctionCallRequested, call_id=texts, name=texts, arguments=texts),
        st.builds(ServedCallStarted, call_id=texts, server=texts, tool=texts, arguments=texts),
        st.builds(ServedCallFinished, call_id=texts, output=texts, failed=st.booleans()),
        st.builds(MessagesAdded, messages=added),
        st.builds(TurnFinished, finish_reason=reasons, usage=usages()),
        st.builds(TurnHandedBack, prompt_tokens=counts, usage=usages()),
        st.builds(TurnFailed, error=error_reports(), usage=usages()),
    )


def model_cards() -> st.SearchStrategy[ModelCard]:
    """A model on offer."""
    return st.builds(ModelCard, name=texts, context_window_tokens=counts, max_output_tokens=counts)
