"""Resolving the settings of a turn from its request and its conversation."""

from collections.abc import Sequence

from backend.conversations.domain.responses import Conversation, ConversationSettings
from backend.conversations.domain.served_tools import ServedTools
from backend.openai_api.domain.client_tools import FunctionChoice, function_definitions
from backend.openai_api.domain.response_object import text_format
from backend.openai_api.domain.tool_selection import MAX_LISTED, selection_of
from backend.openai_api.domain.turn_request import FileSearchChoice, FileSearchTool, TurnRequest
from shared.errors import InvalidRequest, PermissionDenied
from shared.models.events import ModelCard
from shared.models.execution import AccessMode, ModelParameters, NamedToolChoice, ReasoningEffort, ToolChoice, Verbosity
from shared.models.json_text import encode_json
from shared.models.values import JsonObject
from shared.prompts.custom_tools import custom_format
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from shared.prompts.knowledge_tools import select_served

MAX_EXTRA_BYTES = 65_536
"""How long parameters may be that nobody but the provider checks: a bias for each of 300 tokens has 6,000 bytes."""


def find_asked_model(request: TurnRequest, conversation: Conversation) -> str:
    """Return the name of the model that a turn asks for: its request's, else the conversation's; "" for the default."""
    use = conversation.preset_use
    return request.model or (use.name if use is not None else conversation.model)


def own_settings(
    request: TurnRequest, conversation: Conversation, leading_instructions: Sequence[str], model: str
) -> ConversationSettings:
    """Resolve the settings that no preset gives: the request's, else the conversation's own.

    `tools`, when given, replaces functions, knowledge bases and search options altogether. `model` is the one that
    runs.
    """
    before = conversation.own_settings
    return ConversationSettings(
        model=model,
        instructions=_instructions(request, before, leading_instructions),
        functions=function_definitions(request.tools) if request.tools is not None else before.functions,
        knowledge_base_ids=_base_ids(request) if request.tools is not None else before.knowledge_base_ids,
        search=request.search if request.tools is not None else before.search,
        served=ServedTools(own=selection_of(request.tools) if request.tools is not None else before.served.own),
    )


def base_param(request: TurnRequest, base_id: str) -> str | None:
    """Return the path at which a request binds a base, such as `tools[0].vector_store_ids[1]`."""
    for place, tool in enumerate(request.tools or ()):
        if isinstance(tool, FileSearchTool) and base_id in tool.vector_store_ids:
            return f"tools[{place}].vector_store_ids[{tool.vector_store_ids.index(base_id)}]"
    return None


def forbid_filters(request: TurnRequest, own: ConversationSettings, joined: ConversationSettings) -> None:
    """Refuse filters by attributes in a restricted turn, whose user could try out by them what they may not read.

    `own` are the settings without those of a preset, `joined` those of the turn.

    Raises:
        PermissionDenied: there are some; `param` names the tool of the request that gives them, else `tools` where an
            earlier turn gave them, else `model`, whose preset does.
    """
    if joined.search.filters is None:
        return
    places = (place for place, tool in enumerate(request.tools or ()) if getattr(tool, "filters", None))
    if (place := next(places, None)) is not None:
        advice, param = "leave 'filters' out", f"tools[{place}].filters"
    elif own.search.filters is not None:
        advice, param = "an earlier turn gave some, so give 'tools' without them", "tools"
    else:
        advice, param = "this model's settings hold some, so name another model", "model"
    message = f"Filters cannot be used where your access to a knowledge base is restricted: {advice}."
    raise PermissionDenied(message, param=param)


def forbid_logprobs(request: TurnRequest) -> None:
    """Refuse log probabilities in a restricted turn: what could have stood in a word's place tells a withheld text.

    Raises:
        PermissionDenied: they are asked for.
    """
    if request.asked_logprobs is not None:
        message = "Log probabilities are not told where your access to a knowledge base is restricted; leave this out."
        raise PermissionDenied(message, param="top_logprobs" if request.top_logprobs else "include")


def name_untaken(request: TurnRequest, card: ModelCard) -> TurnRequest:
    """Name as passed over the parameters that neither this server nor the model that runs has.

    Raises:
        InvalidRequest: nothing unknown is passed over; `param` names the first of them.
    """
    return request.with_named([name for name in request.extra_parameters or () if name not in card.extra_parameters])


def _extra(request: TurnRequest, card: ModelCard) -> JsonObject | None:
    given = request.extra_parameters or {}
    taken: JsonObject = {name: value for name, value in given.items() if name in card.extra_parameters}
    if taken and len(encode_json(taken)) > MAX_EXTRA_BYTES:
        names = ", ".join(taken)
        raise InvalidRequest(
            f"{names}: together they may have {MAX_EXTRA_BYTES:,} bytes as JSON.", param=next(iter(taken))
        )
    return taken or None


def model_parameters(request: TurnRequest, card: ModelCard) -> ModelParameters:
    """Build the parameters of the model calls.

    Raises:
        InvalidRequest: what of them is for the provider alone is too long; `param` names the first of these.
    """
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
        top_logprobs=request.asked_logprobs,
        extra=_extra(request, card),
    )


def _instructions(request: TurnRequest, before: ConversationSettings, leading: Sequence[str]) -> str:
    given = [text for text in (request.instructions, *leading) if text]
    if given or request.instructions is not None:
        return "\n\n".join(given)
    return before.instructions


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


def check_choice(
    request: TurnRequest, settings: ConversationSettings, *, has_bases: bool, mode: AccessMode = AccessMode.FULL
) -> None:
    """Check that the tool that must be called is there; `has_bases` says whether the turn has a base to search.

    A function may be the client's, or a tool of a tool server by the name that the model calls it; `mode` is the
    strictest one of the bases, under which most of the latter are not offered.

    Raises:
        InvalidRequest: it is not; `param` names `tool_choice` or its name.
    """
    match request.tool_choice:
        case FunctionChoice(type=kind, name=name) if name not in (names := _names(settings, kind, mode)):
            there_are = f"there are {', '.join(map(repr, names[:MAX_LISTED]))}" if names else "there is none"
            sought = "function" if kind == "function" else "custom tool"
            message = f"The tools hold no {sought} {name!r}: {there_are}; name one of them, or add it to 'tools'."
            raise InvalidRequest(message, param="tool_choice.name")
        case FileSearchChoice() if not has_bases:
            message = "There is no knowledge base to search; add a file_search to 'tools', or choose 'auto'."
            raise InvalidRequest(message, param="tool_choice")
        case "required" if not (settings.definitions or has_bases):
            message = "There are no tools of which one could be called; give 'tools', or choose 'auto'."
            raise InvalidRequest(message, param="tool_choice")
        case _:
            pass


def _names(settings: ConversationSettings, kind: str, mode: AccessMode) -> list[str]:
    return sorted(
        tool.name
        for tool in (*settings.functions, *select_served(settings.served.tools, mode))
        if (custom_format(tool.parameters) is not None) == (kind == "custom")
    )
