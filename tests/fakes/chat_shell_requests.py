"""Requests for tests of the border between the two services."""

from datetime import UTC, datetime

from shared.models.execution import (
    AccessMode,
    DynamicBlock,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    NamedToolChoice,
    ReasoningEffort,
    ToolDefinition,
    TurnLimits,
    User,
    Verbosity,
)
from shared.models.messages import (
    AssistantMessage,
    ImageDetail,
    ImagePart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SENT_AT = datetime(2026, 11, 22, 8, 30, 0, 123457, tzinfo=UTC)
FAR_DEADLINE = datetime(2126, 11, 22, 8, 40, tzinfo=UTC)

PLAIN = ModelParameters(
    temperature=None,
    top_p=None,
    presence_penalty=None,
    frequency_penalty=None,
    max_output_tokens=None,
    reasoning_effort=None,
    text_format=None,
    verbosity=None,
    tool_choice="auto",
    parallel_tool_calls=True,
)


def full_parameters() -> ModelParameters:
    """Return parameters of which none is left to the provider."""
    return ModelParameters(
        temperature=0.25,
        top_p=1.0,
        presence_penalty=-0.5,
        frequency_penalty=1e-05,
        max_output_tokens=512,
        reasoning_effort=ReasoningEffort.LOW,
        text_format={"type": "json_schema", "name": "answer", "schema": {"type": "object"}},
        verbosity=Verbosity.HIGH,
        tool_choice=NamedToolChoice(name="weather"),
        parallel_tool_calls=False,
        seed=-7,
        stop=("END", "\n\n"),
    )


def full_request() -> ExecutionRequest:
    """Return a request in which every field says something."""
    call = ToolCall(call_id="call_1", name="knowledge_base_search", arguments='{"query": "冷却"}')
    return ExecutionRequest(
        request_id="req_1",
        conversation_id="conv_1",
        turn_id="resp_1",
        epoch=3,
        user=User(id="u1", tenant="default", display_name="Ада"),
        model="demo-model",
        parameters=full_parameters(),
        system_prompt="You answer questions.",
        history=(
            UserMessage(content="How is it cooled?\n\n<time>2026-11-22 09:29 Europe/Berlin</time>"),
            AssistantMessage(text="", tool_calls=(call,)),
            ToolMessage(call_id="call_1", content="[1] By air."),
            AssistantMessage(text="By air [1]."),
            AssistantMessage(text="", tool_calls=(ToolCall(call_id="call_2", name="weather", arguments="{"),)),
            ToolMessage(call_id="call_2", content=(TextPart(text="sunny"),)),
        ),
        kb_meta_prompt="Knowledge bases:\n- kb_1 Handbook",
        dynamic_blocks=(DynamicBlock(name="identity", text="The user is Ада."),),
        prompt=(TextPart(text="And this?"), ImagePart(url="https://example.org/a.png", detail=ImageDetail.HIGH)),
        sent_at=SENT_AT,
        time_zone="Europe/Berlin",
        knowledge=Knowledge(
            bases=(
                KnowledgeBaseRef(id="kb_1", name="Handbook", access_mode=AccessMode.FULL),
                KnowledgeBaseRef(id="kb_2", name="Board", access_mode=AccessMode.RESTRICTED),
            ),
            access_mode=AccessMode.RESTRICTED,
            ticket="t.1",
            user_words="Is it cooled at all?\nHow is it cooled?\nAnd this?",
        ),
        tools=(
            ToolDefinition(
                name="weather",
                description="Tell the weather.",
                parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
                strict=True,
            ),
            ToolDefinition(name="ping", description=None, parameters=None, strict=None),
        ),
        limits=TurnLimits(max_knowledge_calls=10, max_model_calls=None),
        cache_key="ck_1",
        deadline=FAR_DEADLINE,
    )
