"""Parse and check the JSON frames of a provider's stream.

Behind this place no text holds what no text can hold: a NUL, or half of a surrogate pair.
"""

import json
import re
from enum import StrEnum

import orjson

from shared.errors import ModelProtocolViolated
from shared.models.values import JsonObject, JsonValue


class LeftOut(StrEnum):
    """What an answer cannot hold, in the words in which its reader is told that it was left out."""

    CHARACTERS = "characters that no text can hold"
    COUNTS = "counts of tokens that are no counts"
    CALLS = "tool calls without a name or of an unknown shape"
    LOGPROBS = "log probabilities beyond what an answer may have of them"


_UNKNOWN_SHAPE = "the model's provider sent a frame of an unknown shape"
_NO_CHARACTER = "\ufffd"
_NUL_ESCAPE = b"\\u0000"
_ODD = re.compile("[\x00\ud800-\udfff]")
_INT64_DIGITS = 18
"""What is longer may not fit into 64 bits, which is all that other encodings carry."""


class FrameParser:
    """Parses the frames of one answer.

    A character that no text can hold becomes U+FFFD, except for the two halves of one that was split between two
    frames, which are joined. Where something was left out, `left_out` says so.
    """

    def __init__(self, left_out: set[LeftOut]) -> None:
        self._left_out = left_out
        self._half = ""

    def parse(self, payload: bytes) -> JsonObject:
        """Parse a frame, which must be a JSON object.

        Raises:
            ModelProtocolViolated: it is something else.
        """
        try:
            frame = orjson.loads(payload)
            if _NUL_ESCAPE not in payload:
                return expect_object(frame)
        except orjson.JSONDecodeError:
            frame = _parse_leniently(payload)
        try:
            return expect_object(self._mend(frame))
        except RecursionError as error:
            raise ModelProtocolViolated("the model's provider sent a frame that is nested too deeply") from error

    def _mend(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self._text(value) if _ODD.search(value) else value
        if isinstance(value, dict):
            return {str(self._mend(name)): self._mend(inner) for name, inner in value.items()}
        return [self._mend(inner) for inner in value] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        """Join the halves of characters; the first half of one at the end waits for the text that goes on with it."""
        if self._half and "\udc00" <= text[0] <= "\udfff":
            text, self._half = self._half + text, ""
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if "\ud800" <= text[-1] <= "\udbff":
            self._note(bool(self._half))
            text, self._half = text[:-1], text[-1]
        whole = _ODD.sub(_NO_CHARACTER, text)
        self._note(whole != text)
        return whole

    def end(self) -> None:
        """Note that no frame follows."""
        self._note(bool(self._half))

    def _note(self, is_odd: bool) -> None:
        if is_odd:
            self._left_out.add(LeftOut.CHARACTERS)


def _parse_leniently(payload: bytes) -> JsonValue:
    """Parse JSON with numbers that are none, and with halves of characters."""
    try:
        return json.loads(payload.decode("utf-8", "surrogateescape"), parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise ModelProtocolViolated("the model's provider sent a frame that is not JSON") from error


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _INT64_DIGITS else float(digits)


def expect_object(value: JsonValue) -> JsonObject:
    """Return a value that must be a JSON object, or raise ModelProtocolViolated."""
    if isinstance(value, dict):
        return value
    raise ModelProtocolViolated(_UNKNOWN_SHAPE)


def expect_array(value: JsonValue) -> list[JsonValue]:
    """Return a value that must be a JSON array, or raise ModelProtocolViolated."""
    if isinstance(value, list):
        return value
    raise ModelProtocolViolated(_UNKNOWN_SHAPE)
