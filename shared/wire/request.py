"""Convert an `ExecutionRequest` to a protobuf message, and back."""

from pydantic import ValidationError

from protos.execution.v1 import request_pb2 as pb
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
    ToolChoice,
    TurnLimits,
    User,
    Verbosity,
)
from shared.models.invalid_fields import refusal_of
from shared.wire.messages import (
    content_from_proto,
    messages_from_proto,
    turn_messages_from_proto,
    write_content,
    write_messages,
)
from shared.wire.tools import served_from_proto, served_to_proto, tool_from_proto, tool_to_proto
from shared.wire.values import (
    instant_from_proto,
    instant_to_proto,
    look_up,
    object_from_proto,
    object_to_proto,
    optional,
    refusal,
    require,
    scalar_fields,
    unwritable,
)

ACCESS_MODE_TO_PROTO = {mode: pb.AccessMode.Value(f"ACCESS_MODE_{mode.name}") for mode in AccessMode}
ACCESS_MODE_FROM_PROTO = {
    pb.ACCESS_MODE_UNSPECIFIED: AccessMode.RESTRICTED,
    **{number: mode for mode, number in ACCESS_MODE_TO_PROTO.items()},
}
PURPOSE_FROM_PROTO = {
    pb.PURPOSE_UNSPECIFIED: Purpose.ANSWER,
    pb.PURPOSE_ANSWER: Purpose.ANSWER,
    pb.PURPOSE_SUMMARY: Purpose.SUMMARY,
}
PURPOSE_TO_PROTO = {Purpose.ANSWER: pb.PURPOSE_UNSPECIFIED, Purpose.SUMMARY: pb.PURPOSE_SUMMARY}
REQUIRED_MESSAGES = ("user", "parameters", "knowledge", "limits")


def request_to_proto(request: ExecutionRequest) -> pb.ExecutionRequest:
    """Convert a request to a protobuf message.

    Raises:
        InvalidRequest: a text holds a lone surrogate, or a value cannot be written as JSON.
    """
    try:
        written = pb.ExecutionRequest(
            request_id=request.request_id,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
            epoch=request.epoch,
            user=pb.User(**vars(request.user)),
            model=request.model,
            parameters=parameters_to_proto(request.parameters),
            system_prompt=request.system_prompt,
            kb_meta_prompt=request.kb_meta_prompt,
            dynamic_blocks=[pb.DynamicBlock(name=block.name, text=block.text) for block in request.dynamic_blocks],
            sent_at=instant_to_proto(request.sent_at),
            time_zone=request.time_zone,
            knowledge=_knowledge_to_proto(request.knowledge),
            tools=[tool_to_proto(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)],
            limits=pb.TurnLimits(**vars(request.limits)),
            cache_key=request.cache_key,
            deadline=instant_to_proto(request.deadline),
            reminder=request.reminder,
            keeps_reminders=request.keeps_reminders,
            purpose=PURPOSE_TO_PROTO[request.purpose],
            reads_files=request.reads_files,
            served_tools=served_to_proto(request.served_tools, "served_tools"),
        )
        if request.prompt is not None:
            write_content(request.prompt, written.prompt)
        write_messages(request.history, written.history.add)
        write_messages(request.added, written.added.add)
    except ValueError as error:
        raise unwritable(request) from error
    return written


def request_from_proto(request: pb.ExecutionRequest) -> ExecutionRequest:
    """Read a request from a protobuf message.

    Raises:
        InvalidRequest: a value is missing or malformed; `param` names it.
    """
    for field in REQUIRED_MESSAGES:
        require(request.HasField(field), field)
    prompt = content_from_proto(request.prompt, "prompt") if request.HasField("prompt") else None
    try:
        return ExecutionRequest(
            request_id=request.request_id,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
            epoch=request.epoch,
            user=User.model_validate(scalar_fields(request.user)),
            model=request.model,
            parameters=parameters_from_proto(request.parameters),
            system_prompt=request.system_prompt,
            history=messages_from_proto(request.history, "history"),
            kb_meta_prompt=request.kb_meta_prompt,
            dynamic_blocks=tuple(DynamicBlock(name=one.name, text=one.text) for one in request.dynamic_blocks),
            prompt=prompt,
            sent_at=instant_from_proto(request, "sent_at"),
            time_zone=request.time_zone,
            knowledge=_knowledge_from_proto(request.knowledge),
            tools=tuple(tool_from_proto(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)),
            limits=_limits_from_proto(request.limits),
            cache_key=request.cache_key,
            deadline=instant_from_proto(request, "deadline"),
            added=turn_messages_from_proto(request.added, "added"),
            reminder=request.reminder,
            keeps_reminders=request.keeps_reminders,
            purpose=look_up(PURPOSE_FROM_PROTO, request.purpose, "purpose"),
            reads_files=request.reads_files,
            served_tools=served_from_proto(request.served_tools, "served_tools"),
        )
    except ValidationError as error:
        raise refusal_of(error) from error


def _knowledge_to_proto(knowledge: Knowledge) -> pb.Knowledge:
    bases = [
        pb.KnowledgeBaseRef(id=base.id, name=base.name, access_mode=ACCESS_MODE_TO_PROTO[base.access_mode])
        for base in knowledge.bases
    ]
    return pb.Knowledge(
        bases=bases,
        access_mode=ACCESS_MODE_TO_PROTO[knowledge.access_mode],
        ticket=knowledge.ticket,
        user_words=knowledge.user_words,
    )


def _knowledge_from_proto(knowledge: pb.Knowledge) -> Knowledge:
    bases = tuple(_base_from_proto(base, f"knowledge.bases[{index}]") for index, base in enumerate(knowledge.bases))
    mode = look_up(ACCESS_MODE_FROM_PROTO, knowledge.access_mode, "knowledge.access_mode")
    if any(base.access_mode == pb.ACCESS_MODE_UNSPECIFIED for base in knowledge.bases):
        mode = AccessMode.RESTRICTED
    try:
        return Knowledge(bases=bases, access_mode=mode, ticket=knowledge.ticket, user_words=knowledge.user_words)
    except ValidationError as error:
        raise refusal_of(error, "knowledge") from error


def _base_from_proto(base: pb.KnowledgeBaseRef, place: str) -> KnowledgeBaseRef:
    mode = look_up(ACCESS_MODE_FROM_PROTO, base.access_mode, f"{place}.access_mode")
    return KnowledgeBaseRef(id=base.id, name=base.name, access_mode=mode)


def _limits_from_proto(limits: pb.TurnLimits) -> TurnLimits:
    try:
        return TurnLimits.model_validate(scalar_fields(limits))
    except ValidationError as error:
        raise refusal_of(error, "limits") from error


EFFORT_TO_PROTO = {
    None: pb.REASONING_EFFORT_UNSPECIFIED,
    **{effort: pb.ReasoningEffort.Value(f"REASONING_EFFORT_{effort.name}") for effort in ReasoningEffort},
}
EFFORT_FROM_PROTO = {number: effort for effort, number in EFFORT_TO_PROTO.items()}
VERBOSITY_TO_PROTO = {
    None: pb.VERBOSITY_UNSPECIFIED,
    **{verbosity: pb.Verbosity.Value(f"VERBOSITY_{verbosity.name}") for verbosity in Verbosity},
}
VERBOSITY_FROM_PROTO = {number: verbosity for verbosity, number in VERBOSITY_TO_PROTO.items()}
MODE_TO_PROTO = {
    "auto": pb.TOOL_CHOICE_MODE_AUTO,
    "none": pb.TOOL_CHOICE_MODE_NONE,
    "required": pb.TOOL_CHOICE_MODE_REQUIRED,
}
MODE_FROM_PROTO: dict[pb.ToolChoiceMode.ValueType, ToolChoice] = {
    pb.TOOL_CHOICE_MODE_AUTO: "auto",
    pb.TOOL_CHOICE_MODE_NONE: "none",
    pb.TOOL_CHOICE_MODE_REQUIRED: "required",
}


def parameters_to_proto(parameters: ModelParameters) -> pb.ModelParameters:
    """Convert parameters; a value of None leaves its field absent."""
    return pb.ModelParameters(
        temperature=parameters.temperature,
        top_p=parameters.top_p,
        presence_penalty=parameters.presence_penalty,
        frequency_penalty=parameters.frequency_penalty,
        max_output_tokens=parameters.max_output_tokens,
        reasoning_effort=EFFORT_TO_PROTO[parameters.reasoning_effort],
        text_format=object_to_proto(parameters.text_format, "parameters.text_format"),
        tool_choice=_choice_to_proto(parameters.tool_choice),
        parallel_tool_calls=parameters.parallel_tool_calls,
        verbosity=VERBOSITY_TO_PROTO[parameters.verbosity],
        seed=parameters.seed,
        stop=parameters.stop,
        top_logprobs=parameters.top_logprobs,
        extra=object_to_proto(parameters.extra, "parameters.extra"),
    )


def parameters_from_proto(parameters: pb.ModelParameters) -> ModelParameters:
    """Read parameters; an absent field becomes None.

    Raises:
        InvalidRequest: a value is malformed or unknown; `param` names it, starting with `parameters`.
    """
    text_format = object_from_proto(optional(parameters, "text_format"), "parameters.text_format")
    try:
        return ModelParameters(
            temperature=optional(parameters, "temperature"),
            top_p=optional(parameters, "top_p"),
            presence_penalty=optional(parameters, "presence_penalty"),
            frequency_penalty=optional(parameters, "frequency_penalty"),
            max_output_tokens=optional(parameters, "max_output_tokens"),
            reasoning_effort=look_up(EFFORT_FROM_PROTO, parameters.reasoning_effort, "parameters.reasoning_effort"),
            text_format=text_format,
            verbosity=look_up(VERBOSITY_FROM_PROTO, parameters.verbosity, "parameters.verbosity"),
            seed=optional(parameters, "seed"),
            stop=tuple(parameters.stop),
            top_logprobs=optional(parameters, "top_logprobs"),
            extra=object_from_proto(optional(parameters, "extra"), "parameters.extra"),
            tool_choice=_choice_from_proto(parameters.tool_choice),
            parallel_tool_calls=parameters.parallel_tool_calls,
        )
    except ValidationError as error:
        raise refusal_of(error, "parameters") from error


def _choice_to_proto(choice: ToolChoice) -> pb.ToolChoice:
    if isinstance(choice, NamedToolChoice):
        return pb.ToolChoice(function_name=choice.name)
    return pb.ToolChoice(mode=MODE_TO_PROTO[choice])


def _choice_from_proto(choice: pb.ToolChoice) -> ToolChoice:
    match choice.WhichOneof("choice"):
        case "function_name":
            return NamedToolChoice(name=choice.function_name)
        case "mode":
            return look_up(MODE_FROM_PROTO, choice.mode, "parameters.tool_choice")
        case _:
            raise refusal("parameters.tool_choice", "is missing")
