"""Check the bounds of JSON text before it is parsed, while it arrives.

A parser makes an object of each value, and holds the event loop until it has made them all: a body of two million keys
takes seconds. The scan here reads slices of text with calls that run in C, a millisecond or two each, and keeps no
more than a count from one slice to the next.
"""

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from shared.errors import InvalidRequest

SLICE_BYTES = 65_536
LONG_STRING_BYTES = 1024
ADDRESS_SCHEME = b"data:"
"""How a string begins that holds an image, whose length nothing but the body bounds."""

SMALLEST_WHOLE_NUMBER = -(2**63)
LARGEST_WHOLE_NUMBER = 2**64 - 1
"""Whole numbers that orjson keeps exactly. It reads a larger one as a near floating-point number, and writes none.

JSON sets no bound (RFC 8259, section 6), so a sender may mean such a number: it is refused rather than changed.
"""

_LONGEST_DIGITS = len(str(LARGEST_WHOLE_NUMBER))
_NUL = rb"\u0000"
_LONGEST_ESCAPE = len(_NUL)
_BLANK = b" \t\r\n"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = dict.fromkeys(b"[{", 1) | dict.fromkeys(b"]}", -1)
_NUMBER_CHARACTERS = b"0123456789+-.eE"
_RUN = b"0" * 19
_NUMBERS_AS_ZEROS = bytes(ord("0") if code in _NUMBER_CHARACTERS else ord(" ") for code in range(256))
_LONG_NUMBER = re.compile(rb"[0-9+\-.eE]{19,}")
_WHOLE_NUMBER = re.compile(rb"-?[0-9]+")


@dataclass(frozen=True)
class JsonBounds:
    """What a JSON text may hold at most.

    `values` bounds arrays, objects and the commas between their elements, together, `outside_bytes` what stands outside
    of strings: a parser reads that in one go, and copies it into its complaint. The length of a string is that of
    its text between the quotes; a string that begins with `data:` has no bound but that of the body.
    """

    values: int = 16_384
    depth: int = 1000
    key_bytes: int = 1024
    string_bytes: int = 10_485_760
    number_bytes: int = 8192
    outside_bytes: int = 4_194_304


class Span(NamedTuple):
    """Where a long string stands in the text: from its first byte to the one after its last, without the quotes."""

    start: int
    end: int


class JsonScanner:
    """Takes the slices of one text in their order, however it is split; text that is not JSON is refused by the parser.

    `long_strings` are the strings of 1 KiB and more, `deepest` is the number of nested levels, `members` that of the
    members of all objects; `has_nul` says that a string holds U+0000, `has_large_number` that a whole number is beyond
    64 bits.
    """

    def __init__(self, bounds: JsonBounds) -> None:
        self.values = 0
        self.members = 0
        self.deepest = 0
        self.has_nul = False
        self.has_large_number = False
        self.long_strings: list[Span] = []
        self._bounds = bounds
        self._depth = 0
        self._quotes = 0
        self._in_string = False
        self._may_be_key = False
        self._kept = b""
        self._position = 0
        self._outside_bytes = 0
        self._string_start = 0
        self._string_head = b""

    def feed(self, text: bytes) -> None:
        """Scan a piece of the text.

        Raises:
            InvalidRequest: a bound is exceeded; the message says which, and how much is allowed.
        """
        for start in range(0, len(text), SLICE_BYTES):
            self._scan(self._kept + text[start : start + SLICE_BYTES], is_last=False)

    def end(self) -> None:
        """Scan what is left when the text is complete.

        Raises:
            InvalidRequest: as for `feed`.
        """
        self._scan(self._kept, is_last=True)

    def _scan(self, text: bytes, *, is_last: bool) -> None:
        masked = text.replace(rb"\\", b"__").replace(rb"\"", b"__")
        parts = masked.split(b'"')
        self._quotes += len(parts) - 1
        if self._quotes > 4 * self._bounds.values + 2:  # each value has a key at most
            raise self._too_many()
        ends_in_string = self._in_string ^ (len(parts) % 2 == 0)
        if not is_last:
            self._kept = self._keep_tail(parts[-1], ends_in_string=ends_in_string)
            if self._kept:
                parts[-1] = parts[-1][: -len(self._kept)]
                masked = masked[: -len(self._kept)]
                # The text itself, because what is masked in it already would be masked otherwise the next time.
                self._kept = text[-len(self._kept) :]
        self.has_nul = self.has_nul or _NUL in masked
        self._read_strings(parts)
        outside = parts[1::2] if self._in_string else parts[0::2]
        self._in_string = ends_in_string
        self._position += len(masked)
        self._count(b" ".join(outside))

    def _keep_tail(self, tail: bytes, *, ends_in_string: bool) -> bytes:
        """Return the end of a slice that only the next slice explains: part of an escape, or of a number."""
        if ends_in_string:
            start = tail.find(b"\\", max(0, len(tail) - _LONGEST_ESCAPE + 1))
            return tail[start:] if start >= 0 else b""
        number = tail[len(tail.rstrip(_NUMBER_CHARACTERS)) :]
        self._check_number(number)
        return number

    def _check_number(self, number: bytes) -> None:
        if len(number) > self._bounds.number_bytes:
            raise InvalidRequest(f"A number is written with more than {self._bounds.number_bytes} characters.")

    def _read_strings(self, parts: list[bytes]) -> None:
        """Note long strings, and refuse those beyond a bound; short ones are skipped by their length."""
        place = self._position
        inside = self._in_string
        for number, part in enumerate(parts):
            if inside:
                self._read_string(part, place, is_first=not number, is_open=number == len(parts) - 1)
            elif self._may_be_key:
                self._refuse_long_key(part)
            place += len(part) + 1
            inside = not inside

    def _read_string(self, part: bytes, place: int, *, is_first: bool, is_open: bool) -> None:
        if not (is_first and self._in_string):
            self._string_start, self._string_head = place, b""
        if len(self._string_head) < len(ADDRESS_SCHEME):
            self._string_head = (self._string_head + part[: len(ADDRESS_SCHEME)])[: len(ADDRESS_SCHEME)]
        end = place + len(part)
        length = end - self._string_start
        if length > self._bounds.string_bytes and self._string_head != ADDRESS_SCHEME:
            raise InvalidRequest(f"A string is longer than {self._bounds.string_bytes} bytes.")
        if not is_open and length >= LONG_STRING_BYTES:
            self._may_be_key = length > self._bounds.key_bytes
            self.long_strings.append(Span(self._string_start, end))

    def _refuse_long_key(self, after: bytes) -> None:
        following = after.lstrip(_BLANK)
        if following.startswith(b":"):
            raise InvalidRequest(f"The key of an object is longer than {self._bounds.key_bytes} bytes.")
        self._may_be_key = not following

    def _count(self, outside: bytes) -> None:
        self._outside_bytes += len(outside)
        if self._outside_bytes > self._bounds.outside_bytes:
            raise InvalidRequest(f"The body holds more than {self._bounds.outside_bytes} bytes outside of its strings.")
        self.members += outside.count(b":")
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self.values > self._bounds.values:
            raise self._too_many()
        brackets = outside.translate(None, _NO_BRACKETS)
        if brackets:
            depths = list(accumulate(map(_STEPS.__getitem__, brackets), initial=self._depth))
            self.deepest = max(self.deepest, *depths)
            if self.deepest > self._bounds.depth:
                raise InvalidRequest(f"The body is nested too deeply: more than {self._bounds.depth} levels.")
            if min(depths) < 0:
                raise InvalidRequest("The body is not valid JSON: it closes more brackets than it opens.")
            self._depth = depths[-1]
        # Hardly any text has so many digits in a row, and this finds them ten times faster than the expression.
        if _RUN not in outside.translate(_NUMBERS_AS_ZEROS):
            return
        for found in _LONG_NUMBER.findall(outside):
            self._check_number(found)
            self.has_large_number = self.has_large_number or _is_large(found)

    def _too_many(self) -> InvalidRequest:
        return InvalidRequest(
            f"The body holds more than {self._bounds.values} values: arrays, objects, elements and members together."
        )


def _is_large(number: bytes) -> bool:
    if _WHOLE_NUMBER.fullmatch(number) is None:
        return False
    # Python refuses to convert numbers of thousands of digits.
    is_long = len(number) > _LONGEST_DIGITS + 1
    return is_long or not SMALLEST_WHOLE_NUMBER <= int(number) <= LARGEST_WHOLE_NUMBER
