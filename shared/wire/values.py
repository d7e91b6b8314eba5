"""What every message needs: instants, JSON objects, presence, and errors that name the place."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
    """Say why protobuf refused a value: a lone surrogate, named by its place, or too large a number."""
    try:
        encode_json(value.model_dump(exclude={"sent_at", "deadline"}))
    except InvalidRequest as refusal:
        return refusal
    return InvalidRequest("a number has more than 64 bits")


def require(present: bool, place: str) -> None:
    """Refuse a missing message.

    Raises:
        InvalidRequest: `param` is `place`.
    """
    if not present:
        raise refusal(place, "is missing")


def refusal(place: str, complaint: str) -> InvalidRequest:
    """Describe what is wrong at a place."""
    return InvalidRequest(f"{place}: {complaint}", param=place)


def optional(message: Message, field: str) -> Any:
    """Return a field that knows its presence, or None."""
    return getattr(message, field) if message.HasField(field) else None


def known(words: Mapping[K, T], word: K, place: str) -> T:
    """Translate an enum's value.

    Raises:
        InvalidRequest: it is not in the table.
    """
    try:
        return words[word]
    except KeyError as error:
        raise refusal(place, "is no value that is known here") from error


def instant_to_proto(moment: datetime) -> Timestamp:
    """Write an instant, to the microsecond."""
    seconds, microseconds = divmod((moment - EPOCH) // MICROSECOND, MICROSECONDS_A_SECOND)
    return Timestamp(seconds=seconds, nanos=microseconds * 1000)


def instant_from_proto(message: Message, place: str) -> datetime:
    """Read the instant in field `place`; what is finer than a microsecond is cut off.

    Raises:
        InvalidRequest: missing, or outside of the years 1 to 9999.
    """
    require(message.HasField(place), place)
    stamp: Timestamp = getattr(message, place)
    try:
        return EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError as error:
        raise refusal(place, "lies outside of the years 1 to 9999") from error


def object_to_proto(value: JsonObject | None, place: str) -> str | None:
    """Write a JSON object as text, its keys in their order."""
    return None if value is None else encode_json(value, place).decode()


def object_from_proto(text: str | None, place: str) -> JsonObject | None:
    """Read a JSON object.

    Raises:
        InvalidRequest: no JSON, or no object.
    """
    if text is None:
        return None
    value = decode_json(text, place)
    if not isinstance(value, dict):
        raise refusal(place, "must be a JSON object")
    encode_json(value, place)
    return value
