"""Convert an `ExecutionRequest` to the body of an OpenAI Responses request, and back, without loss.

A value for which OpenAI's API has a field is written to that field; every other value becomes a string in `metadata`.
"""

from collections.abc import Mapping

from pydantic import ValidationError

from shared.errors import InvalidRequest
from shared.models.execution import (
    AccessMode,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    NamedToolChoice,
    Purpose,
    ToolChoice,
    ToolDefinition,
)
from shared.models.invalid_fields import read, refusal_of
from shared.models.json_text import encode_json
from shared.models.openai_body import FunctionChoice, FunctionTool, Metadata, RequestBody
from shared.models.openai_items import decode_input, encode_items
from shared.models.values import JsonObject, JsonValue, Value


class OpenAIRequestConverter:
    """Converts in both directions: `to_execution_request(from_execution_request(r)) == r` for every request `r`."""

    @staticmethod
    def from_execution_request(request: ExecutionRequest) -> JsonObject:
        """Convert a request to a body of dicts, lists, strings, numbers, booleans and None."""
        return {
            "model": request.model,
            "instructions": request.system_prompt,
            "input": encode_items(request.history, request.prompt),
            "tools": [{"type": "function", **dict(tool)} for tool in request.tools],
            **_encode_parameters(request.parameters),
            "prompt_cache_key": request.cache_key,
            "stream": True,
            "store": False,
            "metadata": _encode_metadata(request),
        }

    @staticmethod
    def to_execution_request(body: Mapping[str, JsonValue]) -> ExecutionRequest:
        """Read a request from a body.

        Raises:
            InvalidRequest: a key is unknown, or a value is missing or malformed; `param` is e.g. `input[3].role`.
        """
        encode_json(dict(body))
        parsed = read(RequestBody, body, "")
        history, prompt = decode_input(parsed.input, has_prompt=parsed.metadata.has_prompt)
        metadata = parsed.metadata
        fields = {
            **{name: value for name, value in metadata if name in ExecutionRequest.model_fields},
            "model": parsed.model,
            "parameters": _decode_parameters(parsed),
            "system_prompt": parsed.instructions or "",
            "history": history,
            "prompt": prompt,
            "knowledge": _decode_knowledge(metadata),
            "tools": tuple(_decode_tool(tool) for tool in parsed.tools or ()),
            "cache_key": parsed.prompt_cache_key,
        }
        try:
            return ExecutionRequest.model_validate(fields)
        except ValidationError as error:
            raise refusal_of(error) from error


def _decode_tool(tool: FunctionTool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict)


def _encode_parameters(parameters: ModelParameters) -> JsonObject:
    effort = parameters.reasoning_effort
    optional = {
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "max_output_tokens": parameters.max_output_tokens,
        "reasoning": None if effort is None else {"effort": effort.value},
        "text": _encode_text(parameters),
    }
    return {
        "tool_choice": _encode_choice(parameters.tool_choice),
        "parallel_tool_calls": parameters.parallel_tool_calls,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _encode_text(parameters: ModelParameters) -> JsonObject | None:
    verbosity = parameters.verbosity
    text = {"format": parameters.text_format, "verbosity": None if verbosity is None else verbosity.value}
    return {key: value for key, value in text.items() if value is not None} or None


def _encode_choice(choice: ToolChoice) -> str | JsonObject:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedToolChoice) else choice


def _decode_parameters(body: RequestBody) -> ModelParameters:
    return ModelParameters(
        temperature=body.temperature,
        top_p=body.top_p,
        presence_penalty=body.metadata.presence_penalty,
        frequency_penalty=body.metadata.frequency_penalty,
        max_output_tokens=body.max_output_tokens,
        reasoning_effort=body.reasoning.effort if body.reasoning else None,
        text_format=body.text.format if body.text else None,
        verbosity=body.text.verbosity if body.text else None,
        seed=body.metadata.seed,
        stop=body.metadata.stop,
        top_logprobs=body.metadata.top_logprobs,
        extra=body.metadata.extra,
        tool_choice=_decode_choice(body.tool_choice),
        parallel_tool_calls=body.parallel_tool_calls is not False,
    )


def _decode_choice(raw: JsonValue) -> ToolChoice:
    if raw is None:
        return "auto"
    if not isinstance(raw, str):
        return NamedToolChoice(name=read(FunctionChoice, raw, "tool_choice").name)
    if raw in ("auto", "none", "required"):
        return raw
    raise InvalidRequest("tool_choice: must be auto, none, required or a function", param="tool_choice")


def _encode_metadata(request: ExecutionRequest) -> dict[str, str]:
    knowledge, parameters = request.knowledge, request.parameters
    numbers = {
        "presence_penalty": parameters.presence_penalty,
        "frequency_penalty": parameters.frequency_penalty,
        "seed": parameters.seed,
        "top_logprobs": parameters.top_logprobs,
    }
    user_words = {"user_words": knowledge.user_words} if knowledge.user_words else {}
    return {
        "request_id": request.request_id,
        "conversation_id": request.conversation_id,
        "turn_id": request.turn_id,
        "epoch": str(request.epoch),
        "user": _json_of(request.user, "metadata.user"),
        "kb_meta_prompt": request.kb_meta_prompt,
        "dynamic_blocks": _json_of(request.dynamic_blocks, "metadata.dynamic_blocks"),
        "sent_at": request.sent_at.isoformat(),
        "time_zone": request.time_zone,
        "access_mode": knowledge.access_mode.value,
        "ticket": knowledge.ticket,
        **user_words,
        "knowledge_bases": _json_of(knowledge.bases, "metadata.knowledge_bases"),
        "limits": _json_of(request.limits, "metadata.limits"),
        "deadline": request.deadline.isoformat(),
        **({"added": _json_of(request.added, "metadata.added")} if request.added else {}),
        **({"has_prompt": "false"} if _ends_with_user(request) else {}),
        **({"reminder": request.reminder} if request.reminder else {}),
        **({"reads_files": "true"} if request.reads_files else {}),
        **({"purpose": request.purpose.value} if request.purpose is not Purpose.ANSWER else {}),
        **_encode_served(request),
        **{key: repr(value) for key, value in numbers.items() if value is not None},
        **({"stop": encode_json(list(parameters.stop), "metadata.stop").decode()} if parameters.stop else {}),
        **({"extra": encode_json(parameters.extra, "metadata.extra").decode()} if parameters.extra is not None else {}),
    }


def _ends_with_user(request: ExecutionRequest) -> bool:
    """Return whether the last message would be taken for the prompt, which the request has not."""
    return request.prompt is None and bool(request.history) and request.history[-1].role == "user"


def _encode_served(request: ExecutionRequest) -> dict[str, str]:
    served = request.served_tools
    return {"served_tools": _json_of(served, "metadata.served_tools")} if served else {}


def _json_of(value: Value | tuple[Value, ...], place: str) -> str:
    plain = (
        [one.model_dump(mode="json") for one in value] if isinstance(value, tuple) else value.model_dump(mode="json")
    )
    return encode_json(plain, place).decode()


def _decode_knowledge(metadata: Metadata) -> Knowledge:
    bases = tuple(
        KnowledgeBaseRef(id=base.id, name=base.name, access_mode=base.access_mode or AccessMode.RESTRICTED)
        for base in metadata.knowledge_bases
    )
    silent = any(base.access_mode is None for base in metadata.knowledge_bases)
    access_mode = AccessMode.RESTRICTED if silent else metadata.access_mode or AccessMode.RESTRICTED
    try:
        return Knowledge(bases=bases, access_mode=access_mode, ticket=metadata.ticket, user_words=metadata.user_words)
    except ValidationError as error:
        raise refusal_of(error, "metadata") from error
