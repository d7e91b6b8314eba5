"""Numbers in a text, however they are written."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from tests.leaks.oracle.reading import folded, visible

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# first, second and third are how any text counts its points
_ORDINALS = {
    "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90, "dozen": 12,
    "fifth": 5, "eighth": 8, "ninth": 9,
} | {f"{word}th": value for value, word in enumerate(_UNITS) if value in (4, 6, 7, *range(13, 20))}  # fmt: skip
_SMALL = (
    {word: value for value, word in enumerate(_UNITS)}
    | {word: 10 * tens for tens, word in enumerate(_TENS, 2)}
    | _ORDINALS
)
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ENGLISH = "|".join(sorted([*_SMALL, *_LARGE, "hundred", "point"], key=len, reverse=True))
_ENGLISH_RUN = re.compile(rf"(?<![a-z])(?:{_ENGLISH})(?:(?:[\s-]+(?:and[\s-]+)?)?(?:{_ENGLISH}))*(?![a-z])")
_ENGLISH_WORD = re.compile(_ENGLISH)

_CHINESE_DIGITS = (
    {digit: value for value, digit in enumerate("〇一二三四五六七八九")}
    | {digit: value for value, digit in enumerate("零壹贰叁肆伍陆柒捌玖")}
    | {"两": 2}
)
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000, "廿": 20}
_CHINESE_LARGE = {"万": 10**4, "亿": 10**8, "萬": 10**4, "億": 10**8}
_CHINESE = "".join((*_CHINESE_DIGITS, *_CHINESE_TENS, *_CHINESE_LARGE))
_CHINESE_RUN = re.compile(rf"[{_CHINESE}]+(?:点[{_CHINESE}]+)?")

_FIGURE = re.compile(r"(?<![a-z0-9])\d+(?:[.,'’ ]\d+)*(?![a-z0-9]*[g-z_])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_GROUPS = re.compile(r"\d{1,3}(?:([,'’ .])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_SPACED = re.compile(r"(?<![a-z0-9.])\d(?:[\s.,·_|/*-]+\d)+(?![a-z0-9])")
_CLOCK = re.compile(r"20\d\d-\d\d-\d\d[ t]\d\d:\d\d(?::\d\d)?(?:\.\d+)?")
"""Instants that services write; what was planted never has their form."""

_ROMAN = re.compile(r"(?<![A-Za-z])[MDCLXVI]{2,}(?![A-Za-z])")
_ROMAN_VALUES = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}


class Number(NamedTuple):
    """A value and where it stands in the normal form of the text."""

    value: Decimal
    start: int
    end: int


def numbers_in(text: str) -> Iterator[Number]:
    """Yield every number, each way in which its place can be read."""
    plain = _CLOCK.sub(_blanks, folded(text))
    for pattern, read in (
        (_FIGURE, _figure_values),
        (_SPACED, _spaced_values),
        (_ENGLISH_RUN, _english_values),
        (_CHINESE_RUN, _chinese_values),
    ):
        for found in pattern.finditer(plain):
            for value in read(found[0]):
                yield Number(value, found.start(), found.end())
    for found in _ROMAN.finditer(visible(text)):
        yield Number(Decimal(_roman_value(found[0])), found.start(), found.end())


def value_of(figure: str) -> Iterator[Decimal]:
    """Yield the values in a figure as its author meant them: commas stand between thousands, nothing is spaced out."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", folded(figure))
    for piece in _PLAIN.findall(plain):
        yield from _decimal(piece)
    for pattern, read in ((_ENGLISH_RUN, _english_values), (_CHINESE_RUN, _chinese_values)):
        for found in pattern.finditer(plain):
            yield from read(found[0])


def _blanks(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _figure_values(text: str) -> Iterator[Decimal]:
    for piece in _PLAIN.findall(text):
        yield from _decimal(piece)
    for group in _GROUPS.finditer(text):
        separator = group[1]
        whole = group[0].replace(separator, "", group[0].count(separator))
        yield from _decimal(whole)
    yield from _decimal(text.replace(",", "."))


def _spaced_values(text: str) -> Iterator[Decimal]:
    yield from _decimal("".join(re.findall(r"\d", text)))
    yield from _decimal(re.sub(r"[^\d.]", "", text))


def _english_values(text: str) -> Iterator[Decimal]:
    parts = _ENGLISH_WORD.findall(text)
    whole, *fraction = _split(parts, "point")
    digits = "".join(str(_SMALL[part]) for piece in fraction for part in piece if part in _SMALL)
    value = _english_whole(whole)
    yield from _decimal(f"{value}.{digits}" if digits else str(value))
    if len(whole) > 1 and all(_SMALL.get(part, 10) < 10 for part in whole):
        spelled = "".join(str(_SMALL[part]) for part in whole)
        yield from _decimal(f"{spelled}.{digits}" if digits else spelled)


def _english_whole(parts: list[str]) -> int:
    total = current = 0
    for part in parts:
        if part in _LARGE:
            total, current = total + max(current, 1) * _LARGE[part], 0
        elif part == "hundred":
            current = max(current, 1) * 100
        else:
            current += _SMALL[part]
    return total + current


def _chinese_values(text: str) -> Iterator[Decimal]:
    if len(text) < 2:
        return
    whole, _, fraction = text.partition("点")
    digits = "".join(str(_CHINESE_DIGITS[character]) for character in fraction if character in _CHINESE_DIGITS)
    if all(character in _CHINESE_DIGITS for character in whole):
        value = "".join(str(_CHINESE_DIGITS[character]) for character in whole)
    else:
        value = str(_chinese_whole(whole))
    yield from _decimal(f"{value}.{digits}" if digits else value)


def _chinese_whole(text: str) -> int:
    total = section = digit = 0
    for character in text:
        if character in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[character]
        elif character in _CHINESE_TENS:
            section, digit = section + max(digit, 1) * _CHINESE_TENS[character], 0
        else:
            total, section, digit = (total + max(section + digit, 1)) * _CHINESE_LARGE[character], 0, 0
    return total + section + digit


def _roman_value(text: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in text]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))


def _split(parts: Iterable[str], separator: str) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for part in parts:
        if part == separator:
            pieces.append([])
        else:
            pieces[-1].append(part)
    return pieces


def _decimal(text: str) -> Iterator[Decimal]:
    try:
        yield Decimal(text).normalize()
    except InvalidOperation:
        return
