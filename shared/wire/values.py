"""Helpers of all conversions: instants, JSON objects, absent fields, and errors that name the place in the value."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from shared.errors import InvalidRequest
from shared.models.json_text import decode_json, encode_json
from shared.models.values import JsonObject, Value

K = TypeVar("K")
T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_A_SECOND = 1_000_000


def unwritable(value: Value) -> InvalidRequest:
    """Return the error for a value that protobuf refused: it holds a lone surrogate, or too large a number."""
    try:
        encode_json(value.model_dump(exclude={"sent_at", "deadline"}))
    except InvalidRequest as refusal:
        return refusal
    return InvalidRequest("a number has more than 64 bits")


def require(present: bool, place: str) -> None:
    """Check that a required message is present.

    Raises:
        InvalidRequest: it is missing; `param` is `place`.
    """
    if not present:
        raise refusal(place, "is missing")


def refusal(place: str, complaint: str) -> InvalidRequest:
    """Return the error for a malformed value; `place` is its path, such as `knowledge.bases[0].access_mode`."""
    return InvalidRequest(f"{place}: {complaint}", param=place)


def optional(message: Message, field: str) -> Any:
    """Return the value of an optional field, or None where it is absent."""
    return getattr(message, field) if message.HasField(field) else None


def scalar_fields(message: Message) -> dict[str, object]:
    """Return the fields of a message by their names; an optional field that is absent is None, a list is a tuple."""
    return {name: read(message, name) for name, read in _readers_of(message.DESCRIPTOR)}


@cache
def _readers_of(kind: Any) -> tuple[tuple[str, Callable[[Message, str], object]], ...]:
    return tuple(
        (field.name, _list_in if field.is_repeated else optional if field.has_presence else getattr)
        for field in kind.fields
    )


def _list_in(message: Message, field: str) -> object:
    return tuple(getattr(message, field))


def look_up(words: Mapping[K, T], word: K, place: str) -> T:
    """Return what a table has for a value of an enumeration.

    Raises:
        InvalidRequest: the table does not have the value; `param` is `place`.
    """
    try:
        return words[word]
    except KeyError as error:
        raise refusal(place, "is no value that is known here") from error


def instant_to_proto(moment: datetime) -> Timestamp:
    """Convert an instant, to the microsecond."""
    seconds, microseconds = divmod((moment - EPOCH) // MICROSECOND, MICROSECONDS_A_SECOND)
    return Timestamp(seconds=seconds, nanos=microseconds * 1000)


def instant_from_proto(message: Message, place: str) -> datetime:
    """Read the instant in field `place`; fractions of a microsecond are cut off.

    Raises:
        InvalidRequest: it is missing, or outside of the years 1 to 9999.
    """
    require(message.HasField(place), place)
    stamp: Timestamp = getattr(message, place)
    try:
        return EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError as error:
        raise refusal(place, "lies outside of the years 1 to 9999") from error


def object_to_proto(value: JsonObject | None, place: str) -> str | None:
    """Return a JSON object as text; its keys keep their order.

    Raises:
        InvalidRequest: the object cannot be written as JSON; `param` names the place.
    """
    return None if value is None else encode_json(value, place).decode()


def object_from_proto(text: str | None, place: str) -> JsonObject | None:
    """Read a JSON object from text; its keys keep their order.

    Raises:
        InvalidRequest: the text is not valid JSON, or not an object.
    """
    if text is None:
        return None
    value = decode_json(text, place)
    if not isinstance(value, dict):
        raise refusal(place, "must be a JSON object")
    encode_json(value, place)
    return value
