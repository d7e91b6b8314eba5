"""The values of figures, so that one that the user wrote is recognised in another writing."""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from backend.restricted.domain.figure_rows import NUMERIC, FigurePart, Row
from backend.search.domain.number_words import (
    CHINESE_DIGITS,
    CHINESE_SCALES,
    CHINESE_TENS,
    CHINESE_UNITS_BEHIND_DIGITS,
    CHINESE_UNITS_BEHIND_MORE,
    LETTER_UNITS,
    MONTHS,
    ONES,
    SCALES,
    TENS,
    UNITS,
)

TELLING_DIGITS = 3
"""A number of so many significant digits is known again whatever its unit."""

_POINTS = frozenset({".", "点", "點", "point"})
_GROUPING = frozenset({",", "，", "'", ""})
_THOUSAND = 1_000
_SHARES = {"100": "%", "1000": "‰"}
_VAGUE_VALUES = {"half": Decimal("0.5"), "半": Decimal("0.5"), "quarter": Decimal("0.25")}
_UNIT_NAMES = ChainMap[str, str](
    {**UNITS}, {**LETTER_UNITS}, {**MONTHS}, {**CHINESE_UNITS_BEHIND_DIGITS}, {**CHINESE_UNITS_BEHIND_MORE}
)


class Amount(NamedTuple):
    """A number in plain decimal notation, and the name of its unit or ""."""

    value: str
    unit: str

    @property
    def is_telling(self) -> bool:
        """Whether the number has enough significant digits to be known without its unit."""
        digits = self.value.replace(".", "").lstrip("0")
        return len(digits if "." in self.value else digits.rstrip("0")) >= TELLING_DIGITS


def amounts_of(row: Row) -> tuple[Amount, ...]:
    """Return the amounts that a figure states, in order."""
    amounts: list[Amount] = []
    prefix = ""
    for phrase, behind in _phrases(row.parts):
        match phrase, behind:
            case [], FigurePart(kind="unit"):
                prefix = _unit(behind.text)
            case [], FigurePart(kind="ordinal"):
                amounts.append(Amount("", behind.text))
            case [], _:
                pass
            case _, FigurePart(joint="分之"):
                value = _plain(_value(phrase))
                prefix = _SHARES.get(value, f"/{value}")
            case _:
                unit = _unit(behind.text) if behind and behind.kind not in NUMERIC else prefix
                amounts.append(Amount(_plain(_value(phrase)), unit))
                prefix = ""
    return (*amounts, Amount("", prefix)) if prefix else tuple(amounts)


def _phrases(parts: Sequence[FigurePart]) -> Iterator[tuple[list[FigurePart], FigurePart | None]]:
    """Yield the numbers of each amount with the part behind them, and other parts without numbers before them."""
    phrase: list[FigurePart] = []
    for item in (*parts, None):
        if not (phrase and item and _belongs(phrase, item)):
            yield phrase, item
            phrase = []
        if item and item.kind in NUMERIC:
            phrase.append(item)


def _belongs(phrase: Sequence[FigurePart], item: FigurePart) -> bool:
    return item.kind == "suffix" or (item.kind in NUMERIC and _goes_on(phrase, item))


def whole_value(item: FigurePart) -> int:
    """Return the value of a number."""
    return int(_number(item))


def _goes_on(phrase: Sequence[FigurePart], item: FigurePart) -> bool:
    """Return whether a number belongs to the same amount as those before it."""
    last, joint = phrase[-1], item.joint.strip()
    if "scale" in (item.kind, last.kind):
        return joint in ("", "and", "-")
    if joint in _POINTS:
        return len(phrase) == 1 or phrase[-1].joint.strip() not in _POINTS
    if item.is_digits and last.is_digits:
        return joint in _GROUPING and len(item.text) == 3
    return joint in ("", "-") and _is_tens_and_ones(last, item)


def _is_tens_and_ones(last: FigurePart, item: FigurePart) -> bool:
    return last.text in TENS and ONES.get(item.text, 10) < 10


def _value(phrase: Sequence[FigurePart]) -> Decimal:
    total, part = Decimal(0), Decimal(0)
    for item in phrase:
        joint = item.joint.strip()
        if item.kind == "scale":
            scale = _scale(item.text)
            part = (part or 1) * scale
            if scale >= _THOUSAND:
                total, part = total + part, Decimal(0)
        elif joint in _POINTS:
            part += Decimal(f"0.{_digits(item)}")
        elif item.is_digits and joint in _GROUPING:
            part = part * _THOUSAND + _number(item)
        else:
            part += _number(item)
    return total + part


def _number(item: FigurePart) -> Decimal:
    if item.is_digits:
        return Decimal(item.text)
    if item.token.kind == "numerals":
        return Decimal(_chinese_value(item.text))
    return Decimal(ONES.get(item.text) or TENS.get(item.text) or 0)


def _digits(item: FigurePart) -> str:
    """Return a number as the digits behind a decimal point."""
    if item.token.kind == "numerals":
        return "".join(str(CHINESE_DIGITS.get(numeral, 0)) for numeral in item.text)
    return item.text if item.is_digits else str(_number(item))


def _scale(text: str) -> Decimal:
    if text in SCALES:
        return Decimal(SCALES[text])
    if text in _VAGUE_VALUES:
        return _VAGUE_VALUES[text]
    product = Decimal(1)
    for character in text:
        product *= CHINESE_TENS.get(character) or CHINESE_SCALES.get(character) or _VAGUE_VALUES.get(character, 1)
    return product


def _chinese_value(numerals: str) -> int:
    """Return the value of numerals such as 三百五十 or, digit by digit, 二〇二四."""
    if all(numeral in CHINESE_DIGITS for numeral in numerals):
        return int("".join(str(CHINESE_DIGITS[numeral]) for numeral in numerals))
    total = section = digit = 0
    for numeral in numerals:
        if numeral in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[numeral]
        elif numeral in CHINESE_TENS:
            section, digit = section + max(digit, 1) * CHINESE_TENS[numeral], 0
        else:
            scale, part = CHINESE_SCALES[numeral], section + digit
            total = (total + part) * scale if total < scale else total + part * scale
            section = digit = 0
    return total + section + digit


def _unit(text: str) -> str:
    return _UNIT_NAMES.get(text, text)


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
