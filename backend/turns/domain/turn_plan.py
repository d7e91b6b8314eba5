"""What is stored of a turn at its start, so that another process can continue it.

Most of a request is in the log and in the conversation, whose settings are those of the turn that holds it. The plan
holds the rest.
"""

from collections.abc import Sequence

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    messages_of,
    newest_reset,
    sent_entries,
    user_words,
)
from backend.conversations.domain.responses import Conversation, ConversationSettings, StoredResponse
from shared.models.execution import (
    AccessMode,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    TurnLimits,
    User,
)
from shared.models.messages import AssistantMessage, Content, ToolMessage, UserMessage
from shared.models.values import Instant, Value
from shared.prompts.message_order import context_of_request, without_time_suffix


class TurnPlan(Value):
    """The parts of a turn's request that are stored nowhere else.

    `history_end` is the position in the log at which the messages begin that the request carries by themselves,
    `input_end` the length of the log with them. `context` is the context message where the log has none.
    """

    request_id: str
    parameters: ModelParameters
    time_zone: str
    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    limits: TurnLimits
    deadline: Instant
    history_end: int
    input_end: int
    context: str
    keeps_context: bool
    with_results: bool


def plan_of(
    request: ExecutionRequest, log_ends: tuple[int, int], *, keeps_context: bool, with_results: bool
) -> TurnPlan:
    """Take from a request what another process cannot find; `log_ends` are `history_end` and `input_end`."""
    history_end, input_end = log_ends
    return TurnPlan(
        request_id=request.request_id,
        parameters=request.parameters,
        time_zone=request.time_zone,
        bases=request.knowledge.bases,
        access_mode=request.knowledge.access_mode,
        limits=request.limits,
        deadline=request.deadline,
        history_end=history_end,
        input_end=input_end,
        context="" if keeps_context else context_of_request(request),
        keeps_context=keeps_context,
        with_results=with_results,
    )


def continued_request(
    response: StoredResponse, plan: TurnPlan, conversation: Conversation, log: Sequence[Entry], ticket: str
) -> ExecutionRequest:
    """Build the request by which another process continues a turn: the model gets the same bytes.

    Raises:
        ValueError: the log does not hold what the plan says of it.
    """
    reset = newest_reset(log)
    settings = ConversationSettings(
        model=conversation.model,
        instructions=conversation.instructions,
        functions=conversation.functions,
        knowledge_base_ids=conversation.knowledge_base_ids,
    )
    carried = log[plan.history_end : plan.input_end]
    added = messages_of(log[plan.input_end :])
    return ExecutionRequest(
        request_id=plan.request_id,
        conversation_id=conversation.id,
        turn_id=response.id,
        epoch=conversation.epoch,
        user=User(id=response.user_id, tenant=response.tenant, display_name=response.user_id),
        model=settings.model,
        parameters=plan.parameters,
        system_prompt=settings.system_prompt(reset.template_version),
        history=messages_of(sent_entries(log[: plan.history_end], reset)),
        kb_meta_prompt=_text_of(carried) or plan.context,
        dynamic_blocks=(),
        prompt=_prompt(carried, response, plan.time_zone),
        sent_at=response.created_at,
        time_zone=plan.time_zone,
        knowledge=Knowledge(
            bases=plan.bases,
            access_mode=plan.access_mode,
            ticket=ticket,
            user_words="" if plan.access_mode is AccessMode.FULL else user_words(log),
        ),
        tools=settings.functions,
        limits=plan.limits,
        cache_key=conversation.cache_key,
        deadline=plan.deadline,
        added=tuple(message for message in added if isinstance(message, AssistantMessage | ToolMessage)),
    )


def _text_of(carried: Sequence[Entry]) -> str:
    """Return the text of the context message; "" where none was sent."""
    stated = [entry.message for entry in carried if entry.kind is EntryKind.DYNAMIC_CONTEXT]
    return "".join(
        message.content for message in stated if isinstance(message, UserMessage) and isinstance(message.content, str)
    )


def _prompt(carried: Sequence[Entry], response: StoredResponse, time_zone: str) -> Content | None:
    current = next((entry.message for entry in carried if entry.kind is EntryKind.USER), None)
    if not isinstance(current, UserMessage):
        return None
    return without_time_suffix(current.content, response.created_at, time_zone)
