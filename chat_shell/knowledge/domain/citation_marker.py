"""The forms of citation markers in a model's text: `[1]`, `[1, 2]`, `[[1]]`, `【1】`, `［１］`, `【1†source】`."""

import re
from typing import NamedTuple

MAX_NUMBERS = 64
MAX_DIGITS = 9

MAX_SOURCE_CHARACTERS = 100
"""How long the words may be that stand behind a number and a dagger, as models write them that were taught so."""

_FIRST_DIGIT, _DIGIT = "[1-9１-９]", "[0-9０-９]"
_NUMBER = rf"{_FIRST_DIGIT}{_DIGIT}{{0,{MAX_DIGITS - 1}}}+"
_SEPARATOR = r"[,，、;；] ?"
_NUMBERS = rf"{_NUMBER}(?:{_SEPARATOR}{_NUMBER}){{0,{MAX_NUMBERS - 1}}}+"
_NUMBERS_BEFORE = rf"(?:{_NUMBER}{_SEPARATOR}){{0,{MAX_NUMBERS - 1}}}+"

_SOURCE = rf"†[^】\n]{{0,{MAX_SOURCE_CHARACTERS}}}+"

_MARKER = re.compile(rf"\[(?:\[{_NUMBERS}\]\]|{_NUMBERS}\])|【 ?(?:{_NUMBERS} ?|{_NUMBER}{_SOURCE})】|［{_NUMBERS}］")
_BEGINNING = re.compile(
    rf"(?:\[\[?{_NUMBERS_BEFORE}(?:{_NUMBER}\]?)?|［{_NUMBERS_BEFORE}(?:{_NUMBER})?"
    rf"|【 ?(?:{_NUMBERS_BEFORE}(?:{_NUMBER} ?)?|{_NUMBER}{_SOURCE}))\Z"
)
_WRITTEN_NUMBER = re.compile(rf"{_DIGIT}+")
_BEHIND_DAGGER = re.compile("†.*", re.DOTALL)

OPENING = rf"\[(?=\[?(?:{_FIRST_DIGIT}|\Z))|【(?= ?(?:{_FIRST_DIGIT}|\Z))|［(?={_FIRST_DIGIT}|\Z)"
"""Pattern of a bracket that may begin a marker, judged by the characters after it."""


class CitationMarker(NamedTuple):
    """A marker: its numbers, and the index of the character after it."""

    numbers: tuple[int, ...]
    end: int


def marker_at(text: str, at: int) -> CitationMarker | None:
    """Return the marker whose bracket is at index `at`; None where there is none, or only its beginning."""
    found = _MARKER.match(text, at)
    if found is None:
        return None
    numbers = _WRITTEN_NUMBER.findall(_BEHIND_DAGGER.sub("", found[0]))
    return CitationMarker(tuple(map(int, numbers)), found.end())


def begins_marker(text: str, at: int) -> bool:
    """Whether the whole rest of the text is the beginning of a marker, so that more text must decide."""
    return _BEGINNING.match(text, at) is not None


def is_link(opener: str, following: str, *, begins_line: bool) -> bool:
    """Whether the character after a marker makes it a link or a link definition."""
    return opener == "[" and (following == "(" or (following == ":" and begins_line))
