"""Convert the parameters of a model call to a protobuf message, and back."""

from pydantic import ValidationError

from protos.execution.v1 import request_pb2 as pb
from shared.models.execution import ModelParameters, NamedToolChoice, ReasoningEffort, ToolChoice, Verbosity
from shared.models.invalid_fields import refusal_of
from shared.wire.values import known, object_from_proto, object_to_proto, optional, refusal

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
            reasoning_effort=known(EFFORT_FROM_PROTO, parameters.reasoning_effort, "parameters.reasoning_effort"),
            text_format=text_format,
            verbosity=known(VERBOSITY_FROM_PROTO, parameters.verbosity, "parameters.verbosity"),
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
            return known(MODE_FROM_PROTO, choice.mode, "parameters.tool_choice")
        case _:
            raise refusal("parameters.tool_choice", "is missing")
