"""Whole numbers beyond 64 bits: orjson reads them as another number, near by, and writes none.

JSON sets no bound (RFC 8259, section 6), so whoever sends such a number may mean it. It is refused by its name
rather than changed without a word.
"""

import json
from typing import Any, cast

from shared.errors import InvalidRequest

SMALLEST = -(2**63)
LARGEST = 2**64 - 1
"""What orjson keeps exactly."""

_LONGEST_DIGITS = len(str(LARGEST))
_RUN = b"0" * len(str(2**63))
_DIGITS_AS_ZEROS = bytes(ord("0") if chr(code).isdecimal() else ord(" ") for code in range(256))
_MAX_PATH = 256


class _TooLarge:
    """Stands where a number stood that is beyond 64 bits."""


_TOO_LARGE = _TooLarge()


def refuse_large_numbers(raw: bytes) -> None:
    """Refuse a whole number that would not arrive as it was sent; what is no JSON is left to others.

    Raises:
        InvalidRequest: `param` names its place.
    """
    # Hardly any body has so many digits in a row: the rest is not read a second time.
    if _RUN not in raw.translate(_DIGITS_AS_ZEROS):
        return
    try:
        decoded = json.loads(raw, parse_int=_whole_number)
    except (ValueError, RecursionError):
        return
    place = _place_of_large_number(decoded)
    if place is not None:
        raise InvalidRequest("Whole numbers must fit into 64 bits.", param=place[:_MAX_PATH] or None)


def _whole_number(digits: str) -> int | _TooLarge:
    if len(digits.removeprefix("-")) > _LONGEST_DIGITS:
        return _TOO_LARGE
    number = int(digits)
    return number if SMALLEST <= number <= LARGEST else _TOO_LARGE


def _place_of_large_number(decoded: Any) -> str | None:
    """Walk without recursion, as deep as the body goes; the first one in the text is named."""
    waiting: list[tuple[Any, str]] = [(decoded, "")]
    while waiting:
        value, path = waiting.pop()
        if value is _TOO_LARGE:
            return path
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            waiting += [(fields[name], f"{path}.{name}" if path else name) for name in reversed(fields)]
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            waiting += [(items[place], f"{path}[{place}]") for place in reversed(range(len(items)))]
    return None
