"""The response object as clients get it: all of OpenAI's keys at every stage of a turn."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast

from backend.conversations.domain.item_bodies import without_results
from backend.conversations.domain.passed_over import MAX_PAIRS
from backend.conversations.domain.responses import ConversationSettings, ItemBody, ResponseStatus
from backend.conversations.domain.served_tools import ServerChoice
from backend.knowledge.domain.tickets import SearchOptions
from backend.openai_api.domain.client_tools import FunctionChoice
from backend.openai_api.domain.turn_request import FileSearchChoice, JsonSchemaFormat, TurnRequest
from shared.errors import IMAGE_CODES
from shared.models.error_reports import find_error_class
from shared.models.events import ErrorReport, FinishReason, Usage
from shared.models.execution import ToolDefinition
from shared.models.values import JsonObject, JsonValue, objects_in
from shared.prompts.custom_tools import custom_format, custom_tool

ResponseBody = JsonObject

RESPONSE_ERROR_CODES: Mapping[str, str] = {
    "context_length_exceeded": "invalid_prompt",
    "content_filter": "invalid_prompt",
    "insufficient_quota": "rate_limit_exceeded",
    **{code: code for code in ("rate_limit_exceeded", "invalid_prompt", *IMAGE_CODES)},
}
"""What stands for a code in a response's own error, which knows those of OpenAI's closed list alone; for all others it
is `server_error`. The class of our own error is in `error.type`."""

INCOMPLETE_REASONS = {FinishReason.LENGTH: "max_output_tokens", FinishReason.CONTENT_FILTER: "content_filter"}
LEFT_OUT = "ballast_left_out"
"""The key of a response's metadata that says what of the model's output could not be kept."""
MOST_METADATA_CHARACTERS = 512
_BETWEEN_LEFT_OUT = "; "

DEFAULT_TEMPERATURE = 1.0
DEFAULT_TOP_P = 1.0


class Ending(NamedTuple):
    """How a turn ended; `error` is set exactly when it failed.

    An interrupted turn ended because its process did: it is incomplete, for none of the reasons that OpenAI's API has.
    """

    status: ResponseStatus
    incomplete_reason: str | None = None
    usage: Usage = Usage()
    error: ErrorReport | None = None
    is_interrupted: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the model ended its answer itself or at a limit."""
        return self.status in (ResponseStatus.COMPLETED, ResponseStatus.INCOMPLETE) and not self.is_interrupted

    @property
    def is_whole(self) -> bool:
        """Whether the client was shown all that the model said, be it that a limit of tokens ended it."""
        return self.is_success and self.incomplete_reason in (None, INCOMPLETE_REASONS[FinishReason.LENGTH])


def build_ending(reason: FinishReason, usage: Usage) -> Ending:
    """Build the ending of a turn that the model finished."""
    cut = INCOMPLETE_REASONS.get(reason)
    status = ResponseStatus.INCOMPLETE if cut else ResponseStatus.COMPLETED
    return Ending(status=status, incomplete_reason=cut, usage=usage)


def build_interruption(usage: Usage) -> Ending:
    """Build the ending of a turn whose process could not finish it, with what it had said."""
    return Ending(status=ResponseStatus.INCOMPLETE, usage=usage, is_interrupted=True)


def build_failure(report: ErrorReport, usage: Usage) -> Ending:
    """Build the ending of a turn that failed."""
    return Ending(status=ResponseStatus.FAILED, usage=usage, error=report)


def new_body(
    request: TurnRequest, settings: ConversationSettings, response_id: str, conversation_id: str, created_at: datetime
) -> ResponseBody:
    """Build the object as it is when the turn begins; only a stored turn shows its conversation."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(created_at.timestamp()),
        "completed_at": None,
        "status": ResponseStatus.IN_PROGRESS.value,
        "background": request.is_background,
        "conversation": {"id": conversation_id} if request.is_stored else None,
        "error": None,
        "frequency_penalty": float(request.frequency_penalty or 0),
        "incomplete_details": None,
        "instructions": settings.instructions or None,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "metadata": dict(request.metadata or {}),
        "model": settings.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "presence_penalty": float(request.presence_penalty or 0),
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": _show_reasoning(request),
        "safety_identifier": request.safety_identifier,
        "service_tier": "default",
        "store": request.is_stored,
        "temperature": DEFAULT_TEMPERATURE if request.temperature is None else float(request.temperature),
        "text": _text(request),
        "tool_choice": _tool_choice(request),
        "tools": _tools(settings),
        "top_logprobs": request.top_logprobs or 0,
        "top_p": DEFAULT_TOP_P if request.top_p is None else float(request.top_p),
        "truncation": request.truncation or "disabled",
        "usage": None,
        **({"user": request.user} if request.user is not None else {}),
    }


def build_ended_body(body: ResponseBody, output: Sequence[ItemBody], ending: Ending, now_seconds: int) -> ResponseBody:
    """Build the object as it is when the turn has ended."""
    details = {"reason": ending.incomplete_reason} if ending.incomplete_reason is not None else None
    return {
        **body,
        "status": ending.status.value,
        "completed_at": now_seconds if ending.status is ResponseStatus.COMPLETED else None,
        "incomplete_details": details,
        "error": response_error(ending.error) if ending.error is not None else None,
        "output": list(output),
        "usage": usage_body(ending.usage),
    }


def with_left_out(body: ResponseBody, left_out: Iterable[str]) -> ResponseBody:
    """Say in the metadata what was left out, where the caller's own leave a place for it."""
    metadata, said = cast("dict[str, str]", body["metadata"]), _BETWEEN_LEFT_OUT.join(left_out)
    if not said or len(metadata) >= MAX_PAIRS:
        return body
    return {**body, "metadata": {**metadata, LEFT_OUT: said[:MOST_METADATA_CHARACTERS]}}


def read_left_out(body: ResponseBody) -> list[str]:
    """Return what the metadata of a response say was left out."""
    said = cast("dict[str, str]", body.get("metadata") or {}).get(LEFT_OUT)
    return said.split(_BETWEEN_LEFT_OUT) if said else []


def build_created_body(body: ResponseBody) -> ResponseBody:
    """Return the object as it was when the turn began, for a replay whose events are no longer kept."""
    metadata = {name: value for name, value in cast("dict[str, str]", body["metadata"]).items() if name != LEFT_OUT}
    empty: ResponseBody = {"completed_at": None, "incomplete_details": None, "error": None, "output": [], "usage": None}
    return {**body, **empty, "metadata": metadata, "status": ResponseStatus.IN_PROGRESS.value}


def show_body(body: ResponseBody, *, with_results: bool) -> ResponseBody:
    """Return the object as a client gets it: with search results only if the client asks for them."""
    if with_results:
        return body
    return {**body, "output": [without_results(item) for item in objects_in(body["output"])]}


def response_error(report: ErrorReport) -> JsonObject:
    """Make a response's own `error`, whose code is one of OpenAI's closed list."""
    return {"code": _to_listed_code(report.code), "message": report.message, "type": report.type}


def _to_listed_code(code: str) -> str:
    return RESPONSE_ERROR_CODES.get(code, "server_error")


def report_in(body: ResponseBody) -> ErrorReport | None:
    """Return the failure in a stored object, or None; its code is that of its class where the object may not say it."""
    error = cast("dict[str, str] | None", body.get("error"))
    if error is None:
        return None
    kind = error.get("type") or "InternalError"
    own = find_error_class(kind).code
    code = own if _to_listed_code(own) == error["code"] else error["code"]
    return ErrorReport(type=kind, code=code, message=error["message"], param=None, retryable=False)


def total_tokens(body: ResponseBody) -> int:
    """Return how many tokens a response counts, in and out."""
    usage = body.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) else 0


def usage_body(usage: Usage) -> JsonObject | None:
    """Make the object's `usage`; None when the provider reported nothing."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    input_tokens, output_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    details = {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": details,
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": input_tokens + output_tokens,
    }


def _show_reasoning(request: TurnRequest) -> JsonObject:
    given = request.reasoning
    summary = (given.summary or given.generate_summary) if given is not None else None
    return {"effort": given.effort if given is not None else None, "summary": summary}


def _text(request: TurnRequest) -> JsonObject:
    given = request.text
    shape: JsonObject = {"format": text_format(request)}
    if given is not None and given.verbosity is not None:
        shape["verbosity"] = given.verbosity
    return shape


def text_format(request: TurnRequest) -> JsonObject:
    """Return OpenAI's `text.format` object with its defaults."""
    given = request.text.format if request.text is not None else None
    if given is None:
        return {"type": "text"}
    if not isinstance(given, JsonSchemaFormat):
        return {"type": given.type}
    shape: JsonObject = {"type": given.type, "name": given.name, "schema": given.schema_}
    if given.description is not None:
        shape["description"] = given.description
    if given.strict is not None:
        shape["strict"] = given.strict
    return shape


def functions_in(body: ResponseBody) -> tuple[ToolDefinition, ...]:
    """Return the client's functions and custom tools that a response shows."""
    return tuple(
        custom_tool(str(tool["name"]), cast("str | None", tool["description"]), cast(JsonObject, tool["format"]))
        if tool["type"] == "custom"
        else ToolDefinition.model_validate({key: value for key, value in tool.items() if key != "type"})
        for tool in objects_in(body["tools"])
        if tool["type"] in ("function", "custom")
    )


def custom_tools(body: ResponseBody) -> frozenset[str]:
    """Return the names of a response's custom tools."""
    return frozenset([str(tool["name"]) for tool in objects_in(body["tools"]) if tool["type"] == "custom"])


def _tool_choice(request: TurnRequest) -> JsonValue:
    match request.tool_choice:
        case FunctionChoice(type=kind, name=name):
            return {"type": kind, "name": name}
        case FileSearchChoice():
            return {"type": "file_search"}
        case mode:
            return mode or "auto"


def _tools(settings: ConversationSettings) -> list[JsonObject]:
    tools = [_function(function) for function in settings.functions]
    tools += [_tool_server(choice) for choice in settings.served.selection.servers]
    if settings.knowledge_base_ids:
        tools.append(_file_search(settings.knowledge_base_ids, settings.search))
    return tools


def _function(function: ToolDefinition) -> JsonObject:
    named: JsonObject = {"name": function.name, "description": function.description}
    shape = custom_format(function.parameters)
    if shape is not None:
        return {"type": "custom", **named, "format": shape}
    return {"type": "function", **named, "parameters": function.parameters, "strict": function.strict}


def _tool_server(choice: ServerChoice) -> JsonObject:
    names = list(choice.tools) if choice.tools is not None else None
    return {"type": "mcp", "server_label": choice.server, "allowed_tools": names, "require_approval": "never"}


def _file_search(base_ids: Sequence[str], search: SearchOptions) -> JsonObject:
    shown: JsonObject = {"type": "file_search", "vector_store_ids": list(base_ids)}
    if search.max_results is not None:
        shown["max_num_results"] = search.max_results
    if search.min_score is not None:
        shown["ranking_options"] = {"ranker": "auto", "score_threshold": search.min_score}
    if search.filters is not None:
        shown["filters"] = search.filters.model_dump()
    return shown
