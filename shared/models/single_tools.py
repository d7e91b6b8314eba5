"""A call of one of chat_shell's own tools that no model asks for, its result, and the HTTP form of both."""

from collections.abc import Mapping

from shared.errors import InvalidRequest
from shared.models.execution import ExecutionRequest
from shared.models.invalid_fields import read
from shared.models.openai_converter import OpenAIRequestConverter
from shared.models.values import JsonObject, JsonValue, Value


class SingleToolCall(Value):
    """A call of a tool outside of any model call.

    `turn` is on whose behalf the tool runs: it gives bases, access mode, ticket, deadline and the user's own words, as
    in a turn whose current message is what the user asks for. Its model is not asked and may be empty.
    """

    turn: ExecutionRequest
    tool: str
    arguments: JsonObject


class SingleToolResult(Value):
    """The result of a tool: `text` is what a model would read, `structured` the same as an object where there is one.

    `failed` says that the tool refused the call or could not carry it out.
    """

    text: str
    failed: bool
    structured: JsonObject | None


class _CallBody(Value):
    turn: JsonObject
    arguments: JsonObject


def call_to_body(call: SingleToolCall) -> JsonObject:
    """Return the JSON body of `POST /v1/tools/{tool}` at chat_shell's HTTP server."""
    return {"turn": OpenAIRequestConverter.from_execution_request(call.turn), "arguments": call.arguments}


def call_from_body(tool: str, body: Mapping[str, JsonValue]) -> SingleToolCall:
    """Read a call from such a body.

    Raises:
        InvalidRequest: a value is missing or malformed; `param` names it, such as `turn.metadata.ticket`.
    """
    parsed = read(_CallBody, body, "")
    try:
        turn = OpenAIRequestConverter.to_execution_request(parsed.turn)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"turn: {error.message}", param=f"turn.{error.param}" if error.param else "turn"
        ) from error
    return SingleToolCall(turn=turn, tool=tool, arguments=parsed.arguments)
