"""Resolving the settings of a turn from its request and its conversation."""

from collections.abc import Sequence

from backend.conversations.domain.responses import Conversation, ConversationSettings
from backend.turns.domain.response_object import text_format
from backend.turns.domain.turn_request import FileSearchChoice, FileSearchTool, FunctionChoice, TurnRequest
from shared.errors import InvalidRequest
from shared.models.execution import (
    ModelParameters,
    NamedToolChoice,
    ReasoningEffort,
    ToolChoice,
    ToolDefinition,
    Verbosity,
)
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH


def turn_settings(
    request: TurnRequest, conversation: Conversation, leading_instructions: Sequence[str], default_model: str
) -> ConversationSettings:
    """Resolve the settings: the request's, else the conversation's, else the default model.

    `tools`, when given, replaces functions, knowledge bases and search options altogether.
    """
    settings = ConversationSettings(
        model=request.model or conversation.model or default_model,
        instructions=_instructions(request, conversation, leading_instructions),
        functions=_functions(request) if request.tools is not None else conversation.functions,
        knowledge_base_ids=_base_ids(request) if request.tools is not None else conversation.knowledge_base_ids,
        search=request.search if request.tools is not None else conversation.search,
    )
    _check_choice(request, settings)
    return settings


def base_param(request: TurnRequest, base_id: str) -> str | None:
    """Return the path at which a request binds a base, such as `tools[0].vector_store_ids[1]`."""
    for place, tool in enumerate(request.tools or ()):
        if isinstance(tool, FileSearchTool) and base_id in tool.vector_store_ids:
            return f"tools[{place}].vector_store_ids[{tool.vector_store_ids.index(base_id)}]"
    return None


def model_parameters(request: TurnRequest) -> ModelParameters:
    """Build the parameters of the model calls."""
    shape = text_format(request)
    effort = request.reasoning.effort if request.reasoning is not None else None
    verbosity = request.text.verbosity if request.text is not None else None
    return ModelParameters(
        temperature=request.temperature,
        top_p=request.top_p,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        max_output_tokens=request.max_output_tokens,
        reasoning_effort=ReasoningEffort(effort) if effort is not None else None,
        text_format=shape if shape["type"] != "text" else None,
        verbosity=Verbosity(verbosity) if verbosity is not None else None,
        tool_choice=_tool_choice(request),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        seed=request.seed,
        stop=request.stop_sequences,
    )


def _instructions(request: TurnRequest, conversation: Conversation, leading: Sequence[str]) -> str:
    given = [text for text in (request.instructions, *leading) if text]
    if given or request.instructions is not None:
        return "\n\n".join(given)
    return conversation.instructions


def _functions(request: TurnRequest) -> tuple[ToolDefinition, ...]:
    definitions = [
        ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict)
        for tool in request.functions
    ]
    return tuple(sorted(definitions, key=lambda definition: definition.name))


def _base_ids(request: TurnRequest) -> tuple[str, ...]:
    return tuple(sorted({base_id for tool in request.file_searches for base_id in tool.vector_store_ids}))


def _tool_choice(request: TurnRequest) -> ToolChoice:
    match request.tool_choice:
        case FunctionChoice(name=name):
            return NamedToolChoice(name=name)
        case FileSearchChoice():
            return NamedToolChoice(name=KNOWLEDGE_BASE_SEARCH)
        case mode:
            return mode or "auto"


def _check_choice(request: TurnRequest, settings: ConversationSettings) -> None:
    match request.tool_choice:
        case FunctionChoice(name=name) if name not in {function.name for function in settings.functions}:
            raise InvalidRequest(f"The tools hold no function {name!r}.", param="tool_choice.name")
        case FileSearchChoice() if not settings.knowledge_base_ids:
            raise InvalidRequest("The tools hold no file_search.", param="tool_choice")
        case "required" if not (settings.functions or settings.knowledge_base_ids):
            raise InvalidRequest("There are no tools of which one could be called.", param="tool_choice")
        case _:
            pass
