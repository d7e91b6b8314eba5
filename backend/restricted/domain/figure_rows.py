"""The figures of a text: rows of numbers and units.

A figure is a number with all that goes on behind it: further numbers and units, next to each other or joined by a
blank, by a sign such as the decimal point, or by a word such as "point". That one rule covers "12,500 kg",
"3 . 5 %", "twelve hundred", "2024-03-05", "half past nine", version 1.2.3 and 百分之十二 alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from backend.restricted.domain.figure_tokens import UNSEEN, Token
from backend.search.domain.number_words import (
    CHINESE_UNITS_BEHIND_DIGITS,
    CHINESE_UNITS_BEHIND_MORE,
    FRACTIONS,
    LARGE_ORDINALS,
    LETTER_UNITS,
    MONTHS,
    ONES,
    SCALES,
    SMALL_ORDINALS,
    TENS,
    UNITS,
)

NUMERIC = frozenset(("number", "scale"))
"""The kinds of parts that state a number."""

FigurePartKind = Literal["number", "scale", "ordinal", "suffix", "unit"]

MAX_PARTS = 16
"""The longest figure that is read as one; what goes on behind it is swallowed without being read."""

_END = Token("newline", "", 0, 0)
_SIGNS = frozenset(".:/-–—−~'·×*_+^,，\u2044ex")
_WORD_SIGNS = frozenset("-/–—~·")
_SPACED_SIGNS = frozenset(".,/×·^\u2044")
"""Signs that join numbers also with a blank on either side; a dash between blanks parts two thoughts."""

_JOINING_WORDS = frozenset({"and", "point", "past", "to", "of"})
_CHINESE_JOINTS = frozenset("点點至到又") | {"分之"}
_JOINTS = _SIGNS | _CHINESE_JOINTS
_EXACT_JOINTS = frozenset({"分之", " past ", " to "})
_VAGUE = frozenset({"half", "quarter"})
_PREFIXES = frozenset({"$", "€", "£", "¥", "₩", "₹"})
_WORD_PREFIXES = frozenset({"us$", "usd", "eur", "gbp", "cny", "rmb", "jpy", "chf", "hkd"})
_HALVES_OF_DAYS = frozenset({"上午", "下午", "中午", "早上", "晚上", "凌晨"})
_PARTS_FROM_UNITS = frozenset(
    {"this", "that", "these", "those", "the", "last", "next", "each", "every", "all", "is", "are", "was", "were", "who"}
    | {"and", "or", "but", "of", "in", "on", "at", "by", "for", "to", "from", "with", "within", "until", "before"}
    | {"after"}
)
"""Words behind which a unit is no longer that of the number before them ("no one this week")."""

_PLAIN_WORDS_TOO = frozenset({"second", "bit", "degree", "foot", "yard", "fold"})
"""Units that mean something else behind an adjective ("two sharp bits")."""

_SUFFIXES = frozenset({"st", "nd", "rd", "th"})
_NUMBER_WORDS = frozenset((*ONES, *TENS))
_BEHIND_DIGITS = _SUFFIXES.union(MONTHS, LETTER_UNITS)
_ORDINALS = FRACTIONS.union(LARGE_ORDINALS, SMALL_ORDINALS)
_JOINING_NUMBERS = (_JOINING_WORDS | _CHINESE_JOINTS) - {"and", "of"}
_AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar"})


class FigurePart(NamedTuple):
    """A part of a figure; `joint` is what joins it to the part before."""

    kind: FigurePartKind
    token: Token
    joint: str = ""

    @property
    def text(self) -> str:
        """Its text."""
        return self.token.text

    @property
    def is_digits(self) -> bool:
        """Whether it is written in digits."""
        return self.token.kind == "digits"


class Row(NamedTuple):
    """A figure: its parts, and the index of the token behind it."""

    parts: tuple[FigurePart, ...]
    end: int


class Undecided(Exception):
    """More text is needed to decide."""


@dataclass(frozen=True)
class TokenView:
    """The tokens of a text; beyond the last one it raises Undecided, or returns a line's end where the text is over."""

    tokens: Sequence[Token]
    is_over: bool

    def __getitem__(self, index: int) -> Token:
        if index < len(self.tokens):
            return self.tokens[index]
        if not self.is_over:
            raise Undecided
        return _END


def row_at(view: TokenView, at: int, *, is_inside_word: bool) -> Row | None:
    """Return the figure that begins with this token, or None.

    Raises:
        Undecided: more text is needed.
    """
    begun = _read_beginning(view, at, is_inside_word=is_inside_word)
    if begun is None:
        return None
    parts, end = begun
    while len(parts) < MAX_PARTS:
        found = continuation(view, end, parts[-1])
        if found is None:
            break
        part, end = found
        parts.append(part)
    return Row(tuple(parts), end)


def continuation(view: TokenView, at: int, last: FigurePart) -> tuple[FigurePart, int] | None:
    """Return the next part of a figure whose last part ended before this token, and the index behind it.

    Raises:
        Undecided: more text is needed.
    """
    token = view[at]
    if token.text in _JOINTS and (part := _part(view[at + 1], last, token.text)):
        return part, at + 2
    if token.kind != "blank":
        part = _part(token, last, "")
        return (part, at + 1) if part else None
    behind = view[at + 1]
    if part := _part(behind, last, " "):
        return part, at + 2
    joins = behind.text in (_JOINING_WORDS if behind.kind == "word" else _SPACED_SIGNS)
    if joins and view[at + 2].kind == "blank" and (part := _part(view[at + 3], last, f" {behind.text} ")):
        return part, at + 4
    return _unit_behind_word(view, at + 1, last)


def _unit_behind_word(view: TokenView, at: int, last: FigurePart) -> tuple[FigurePart, int] | None:
    """Return the unit of a number that one more word describes: "9 working days", "5 square metres", "one a week"."""
    word = view[at]
    if last.kind not in ("number", "scale") or word.kind != "word" or word.text in _PARTS_FROM_UNITS:
        return None
    if view[at + 1].kind != "blank":
        return None
    unit = view[at + 2]
    is_unit = unit.kind == "word" and len(unit.text) > 2 and UNITS.get(unit.text, "second") not in _PLAIN_WORDS_TOO
    return (FigurePart("unit", unit, f" {word.text} "), at + 3) if is_unit else None


def _read_beginning(view: TokenView, at: int, *, is_inside_word: bool) -> tuple[list[FigurePart], int] | None:
    token = view[at]
    match token.kind:
        case "digits" | "numerals":
            return [FigurePart("number", token)], at + 1
        case "scales":
            return _with_unit(view, at)
        case "word":
            return None if is_inside_word else _read_beginning_in_words(view, at)
        case _:
            is_prefix = token.text in _PREFIXES or token.text in _HALVES_OF_DAYS
            return _behind_prefix(view, at) if is_prefix else None


def _read_beginning_in_words(view: TokenView, at: int) -> tuple[list[FigurePart], int] | None:
    token = view[at]
    if token.text in ONES or token.text in TENS:
        return [FigurePart("number", token)], at + 1
    if token.text in LARGE_ORDINALS:
        return [FigurePart("ordinal", token)], at + 1
    if token.text in _WORD_PREFIXES or token.text in MONTHS:
        return _behind_prefix(view, at)
    if token.text in SMALL_ORDINALS:
        return _day_of_month(view, at)
    return _with_unit(view, at) if token.text in SCALES or token.text in _VAGUE else None


def _day_of_month(view: TokenView, at: int) -> tuple[list[FigurePart], int] | None:
    """Begin with an ordinal, which makes a figure only together with a month."""
    day = FigurePart("ordinal", view[at])
    found = continuation(view, at + 1, day)
    if found is None or found[0].text not in MONTHS:
        return None
    is_month = found[0].joint == " of " or found[0].text not in _AMBIGUOUS_MONTHS
    return ([day, found[0]], found[1]) if is_month else None


def _with_unit(view: TokenView, at: int) -> tuple[list[FigurePart], int] | None:
    """Begin with a word such as "hundred", "half" or 万, which makes a figure only together with a unit or more."""
    vague = FigurePart("scale", view[at])
    found = continuation(view, at + 1, vague)
    is_article = view[at + 1].kind == "blank" and view[at + 2].text in ("a", "an")
    if found is None and is_article and view[at + 3].kind == "blank":
        found = continuation(view, at + 3, vague)
    if found is None or not (found[0].kind in ("unit", "scale") or found[0].joint in _EXACT_JOINTS):
        return None
    return [vague, found[0]], found[1]


def _behind_prefix(view: TokenView, at: int) -> tuple[list[FigurePart], int] | None:
    """Begin with a currency, a month or a half of the day, where a number follows."""
    prefix = view[at]
    next_at = at + 1 + (view[at + 1].kind == "blank")
    token = view[next_at]
    is_of_day = prefix.text in _HALVES_OF_DAYS
    is_number = token.kind in (("digits", "numerals") if is_of_day else ("digits",))
    is_month = prefix.text in MONTHS and prefix.text not in _AMBIGUOUS_MONTHS
    if not is_number and not (is_month and token.text in SMALL_ORDINALS):
        return None
    parts = [FigurePart("unit", prefix), FigurePart("number" if is_number else "ordinal", token, " ")]
    if is_of_day and view[next_at + 1].text in CHINESE_UNITS_BEHIND_DIGITS:
        parts.append(FigurePart("unit", view[next_at + 1]))
    return parts, next_at + len(parts) - 1


def _part(token: Token, last: FigurePart, joint: str) -> FigurePart | None:
    """Return the part of a figure that a token is behind `last`, or None."""
    kind = _kind(token, last, joint)
    return FigurePart(kind, token, joint) if kind and _joins(kind, token, last, joint) else None


def _joins(kind: FigurePartKind, token: Token, last: FigurePart, joint: str) -> bool:
    word = joint.strip()
    if word == "and":
        return last.kind == "scale" and kind in ("number", "ordinal")
    if word == "of":
        return token.text in MONTHS
    if word in _JOINING_NUMBERS:
        return {kind, last.kind} <= NUMERIC
    if last.is_digits and token.kind == "digits":
        return _joins_digits(token, joint)
    return not word or joint in _WORD_SIGNS


def _joins_digits(token: Token, joint: str) -> bool:
    return joint.strip() != "，" or (len(token.text) == 3 and joint == "，")


def _kind(token: Token, last: FigurePart, joint: str) -> FigurePartKind | None:
    text = token.text
    match token.kind:
        case "digits" | "numerals":
            return "number"
        case "scales":
            return "scale" if _is_scale(text, last, joint) else None
        case "unit" | "cjk":
            return "unit" if _is_chinese_unit(text, last) else None
        case "sign":
            return "unit" if text in UNITS or text == UNSEEN else None
        case "word":
            return _kind_of_word(text, last)
        case _:
            return None


def _is_scale(text: str, last: FigurePart, joint: str) -> bool:
    return text != "半" or last.kind == "unit" or joint in ("点", "點")


def _kind_of_word(text: str, last: FigurePart) -> FigurePartKind | None:
    if text in _NUMBER_WORDS:
        return "number"
    if text in SCALES:
        return "scale"
    if last.is_digits and text in _BEHIND_DIGITS:
        return "suffix" if text in _SUFFIXES else "unit"
    if text in MONTHS or text in UNITS:
        is_behind_ordinal = last.kind in ("ordinal", "suffix")
        return "unit" if is_behind_ordinal == (text in MONTHS) else None
    return "ordinal" if text in _ORDINALS and last.kind in NUMERIC else None


def _is_chinese_unit(text: str, last: FigurePart) -> bool:
    if text in CHINESE_UNITS_BEHIND_DIGITS:
        return last.is_digits
    if text in CHINESE_UNITS_BEHIND_MORE:
        return last.is_digits or (last.token.kind == "numerals" and last.text not in ("一", "十"))
    return text in UNITS
