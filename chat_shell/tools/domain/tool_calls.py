"""Tool calls as models write them: their arguments are decoded and checked, and each gets an id of its own."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from shared.models.messages import AssistantMessage, Message, ToolCall
from shared.models.values import JsonObject
from shared.prompts.tool_results import ARGUMENTS_NO_JSON, ARGUMENTS_NO_OBJECT, ARGUMENTS_REJECTED

Arguments = TypeVar("Arguments", bound=BaseModel)

MAX_ID_CHARACTERS = 256
"""The longest id that the API takes back with the result of a call."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL as JSON writes it, behind backslashes that stand for themselves."""

MAX_ENCODINGS = 2
"""Some models encode the arguments' JSON text once more as a JSON string."""


class ArgumentsRejected(Exception):
    """The arguments of a call cannot be used; `message` is sent to the model and names the mistake."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


def decode_arguments(arguments: str) -> JsonObject:
    """Read the arguments of a call; blank ones are an empty object.

    Raises:
        ArgumentsRejected: the text is not a JSON object.
    """
    decoded: object = arguments if arguments.strip() else "{}"
    for _ in range(MAX_ENCODINGS):
        if isinstance(decoded, str):
            decoded = _decode(decoded)
    if not isinstance(decoded, dict):
        raise ArgumentsRejected(ARGUMENTS_NO_OBJECT)
    arguments_object = cast(JsonObject, decoded)
    _check_text(arguments_object)
    return arguments_object


def with_decoded_arguments(call: ToolCall) -> ToolCall:
    """Return a call with its arguments encoded once where they were encoded twice.

    Clients and providers want an object, and would get a text.
    """
    if not call.arguments.lstrip().startswith('"'):
        return call
    try:
        meant: object = json.loads(call.arguments)
        decode_arguments(call.arguments)
    except (ValueError, RecursionError, ArgumentsRejected):
        return call
    return call.model_copy(update={"arguments": meant}) if isinstance(meant, str) and meant.strip() else call


def validate_arguments(shape: type[Arguments], arguments: JsonObject) -> Arguments:
    """Validate decoded arguments.

    Raises:
        ArgumentsRejected: a value is not valid; the message names each wrong field and the mistake.
    """
    try:
        return shape.model_validate(arguments)
    except ValidationError as error:
        complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ArgumentsRejected(ARGUMENTS_REJECTED + "; ".join(complaints)) from error


def _decode(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentsRejected(ARGUMENTS_NO_JSON) from error


def _check_text(decoded: JsonObject) -> None:
    """Refuse what no text can hold: an escape that is half of a surrogate pair (RFC 8259, section 8.2), or a NUL."""
    try:
        encoded = json.dumps(decoded, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise ArgumentsRejected(ARGUMENTS_NO_JSON) from error
    if _NUL.search(encoded):
        raise ArgumentsRejected(ARGUMENTS_NO_JSON)


def with_distinct_ids(calls: Sequence[ToolCall], call_number: int, taken: Iterable[str]) -> tuple[ToolCall, ...]:
    """Give each call an id of its own: a missing or an overlong one is replaced, a repeated one gets a suffix.

    `taken` are the ids used before in this turn. The same answer always gets the same ids.
    """
    seen = set(taken)
    distinct: list[ToolCall] = []
    for place, call in enumerate(calls, start=1):
        is_usable = 0 < len(call.call_id) <= MAX_ID_CHARACTERS
        call_id = _free_id(call.call_id if is_usable else f"call_{call_number}_{place}", seen)
        seen.add(call_id)
        distinct.append(call if call_id == call.call_id else call.model_copy(update={"call_id": call_id}))
    return tuple(distinct)


def _free_id(wanted: str, seen: set[str]) -> str:
    if wanted not in seen:
        return wanted
    suffix = 2
    while f"{wanted}_{suffix}" in seen:
        suffix += 1
    return f"{wanted}_{suffix}"


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Collect the ids of all tool calls in messages."""
    return {
        call.call_id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    }
