"""Convert calls of single tools and their results to protobuf messages, and back."""

from protos.execution.v1 import chat_shell_pb2 as pb
from shared.models.json_text import encode_json
from shared.models.single_tools import SingleToolCall, SingleToolResult
from shared.wire.request import request_from_proto, request_to_proto
from shared.wire.values import object_from_proto, object_to_proto, optional, require, unwritable


def tool_call_to_proto(call: SingleToolCall) -> pb.RunToolRequest:
    """Convert a call.

    Raises:
        InvalidRequest: a text holds a lone surrogate, or a value cannot be written as JSON.
    """
    arguments = encode_json(call.arguments, "arguments").decode()
    return pb.RunToolRequest(turn=request_to_proto(call.turn), tool=call.tool, arguments=arguments)


def tool_call_from_proto(call: pb.RunToolRequest) -> SingleToolCall:
    """Read a call.

    Raises:
        InvalidRequest: a value is missing or malformed; `param` names it.
    """
    require(call.HasField("turn"), "turn")
    arguments = object_from_proto(call.arguments or "{}", "arguments")
    return SingleToolCall(turn=request_from_proto(call.turn), tool=call.tool, arguments=arguments or {})


def tool_result_to_proto(result: SingleToolResult) -> pb.RunToolResponse:
    """Convert a result.

    Raises:
        InvalidRequest: a text holds a lone surrogate.
    """
    structured = object_to_proto(result.structured, "structured")
    try:
        return pb.RunToolResponse(text=result.text, failed=result.failed, structured=structured)
    except ValueError as error:
        raise unwritable(result) from error


def tool_result_from_proto(result: pb.RunToolResponse) -> SingleToolResult:
    """Read a result.

    Raises:
        InvalidRequest: `structured` is no JSON object.
    """
    structured = object_from_proto(optional(result, "structured"), "structured")
    return SingleToolResult(text=result.text, failed=result.failed, structured=structured)
