"""What a citation looks like in a model's text: `[1]`, `[1, 2]`, `[[1]]`, `【1】`."""

import re
from typing import NamedTuple

MAX_NUMBERS = 64
MAX_DIGITS = 9

_NUMBER = rf"[1-9][0-9]{{0,{MAX_DIGITS - 1}}}+"
_SEPARATOR = r"[,，、] ?"
_NUMBERS = rf"{_NUMBER}(?:{_SEPARATOR}{_NUMBER}){{0,{MAX_NUMBERS - 1}}}+"
_NUMBERS_BEFORE = rf"(?:{_NUMBER}{_SEPARATOR}){{0,{MAX_NUMBERS - 1}}}+"

_MARKER = re.compile(rf"\[(?:\[{_NUMBERS}\]\]|{_NUMBERS}\])|【{_NUMBERS}】")
_BEGINNING = re.compile(rf"(?:\[\[?{_NUMBERS_BEFORE}(?:{_NUMBER}\]?)?|【{_NUMBERS_BEFORE}(?:{_NUMBER})?)\Z")
_DIGITS = re.compile("[0-9]+")

MAX_MARKER_CHARACTERS = len("[[") + MAX_NUMBERS * (MAX_DIGITS + len(", ")) + len("]]")
"""No marker is longer, so no more text than this ever waits for what follows it."""

OPENING = r"\[(?=\[?(?:[1-9]|\Z))|【(?=[1-9]|\Z)"
"""Pattern of a bracket that may begin a marker, as far as its next two characters tell."""


class CitationMarker(NamedTuple):
    """A marker: its numbers, and where the text goes on."""

    numbers: tuple[int, ...]
    end: int


def marker_at(text: str, at: int) -> CitationMarker | None:
    """Read the marker whose bracket stands at `at`; None when there is none, or only the beginning of one."""
    found = _MARKER.match(text, at)
    return CitationMarker(tuple(map(int, _DIGITS.findall(found[0]))), found.end()) if found else None


def begins_marker(text: str, at: int) -> bool:
    """Whether all text from `at` on is the beginning of a marker: more text decides."""
    return _BEGINNING.match(text, at) is not None


def is_link(opener: str, following: str, *, begins_line: bool) -> bool:
    """Whether the character behind a marker makes it a link or a link's definition."""
    return opener == "[" and (following == "(" or (following == ":" and begins_line))
