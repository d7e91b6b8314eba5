"""Numbers of the paragraphs of a DOCX, which are not in its text: `1.`, `2.3`, `b)`."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from backend.extraction.formats.docx.styles import NumberedAs, Styles
from backend.extraction.formats.office_xml import children_of, first_child, is_on, value

_PLACE = re.compile(r"%([1-9])")
_BULLET = "-"
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN = 3999
_HAN = "〇一二三四五六七八九"


class _Level(NamedTuple):
    start: int
    form: str
    text: str
    is_legal: bool


class Numbering:
    """The lists of one document, and how far each was counted."""

    def __init__(self, root: Element | None, styles: Styles) -> None:
        self._styles = styles
        self._abstract: Mapping[str, Element] = {
            value(each, "w:abstractNumId") or "": each for each in children_of(root, "w:abstractNum")
        }
        self._lists: Mapping[str, Element] = {value(each, "w:numId") or "": each for each in children_of(root, "w:num")}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._begun = set[tuple[str, int]]()

    def label(self, numbered: NumberedAs) -> str:
        """Count a paragraph and return its number; "" where it shows none."""
        abstract, level = self._levels(numbered)
        if level is None:
            return ""
        counts = self._counts[abstract]
        override = self._override(numbered)
        if override is not None and numbered not in self._begun:
            counts[numbered.level] = override
        else:
            counts[numbered.level] = counts.get(numbered.level, level.start - 1) + 1
        self._begun.add(numbered)
        for below in [each for each in counts if each > numbered.level]:
            del counts[below]
        if level.form == "bullet":
            return _BULLET
        return _PLACE.sub(lambda found: self._number(numbered, int(found[1]) - 1, counts, level), level.text)

    def _number(self, numbered: NumberedAs, place: int, counts: Mapping[int, int], shown: _Level) -> str:
        _, level = self._levels(NumberedAs(numbered.list_id, place))
        count = counts.get(place, level.start if level else 1)
        return _write(count, "decimal" if shown.is_legal or level is None else level.form)

    def _levels(self, numbered: NumberedAs) -> tuple[str, _Level | None]:
        number = self._lists.get(numbered.list_id)
        abstract = value(first_child(number, "w:abstractNumId")) or ""
        root = self._abstract.get(abstract)
        linked = value(first_child(root, "w:numStyleLink"))
        if linked is not None:
            linked_list = self._lists.get(self._styles.list_of_style(linked) or "")
            abstract = value(first_child(linked_list, "w:abstractNumId")) or ""
            root = self._abstract.get(abstract)
        own = [
            first_child(each, "w:lvl") for each in children_of(number, "w:lvlOverride") if _is_at(each, numbered.level)
        ]
        levels = [*(each for each in own if each is not None), *children_of(root, "w:lvl")]
        found = next((each for each in levels if _is_at(each, numbered.level)), None)
        return abstract, _read_level(found) if found is not None else None

    def _override(self, numbered: NumberedAs) -> int | None:
        overrides = children_of(self._lists.get(numbered.list_id), "w:lvlOverride")
        start = next((first_child(each, "w:startOverride") for each in overrides if _is_at(each, numbered.level)), None)
        return int(value(start) or 1) if start is not None else None


def _is_at(element: Element, level: int) -> bool:
    return value(element, "w:ilvl") == str(level)


def _read_level(element: Element) -> _Level:
    return _Level(
        int(value(first_child(element, "w:start")) or 1),
        value(first_child(element, "w:numFmt")) or "decimal",
        value(first_child(element, "w:lvlText")) or "",
        is_on(first_child(element, "w:isLgl")),
    )


def _write(count: int, form: str) -> str:
    return _FORMS[form](count) if form in _FORMS and count > 0 else str(count)


def _roman(count: int) -> str:
    if count > _MOST_ROMAN:
        return str(count)
    written = ""
    for worth, sign in _ROMAN:
        written += sign * (count // worth)
        count %= worth
    return written


def _letters(count: int) -> str:
    """Write a, b, … z, aa, bb, as Word does."""
    return chr(ord("a") + (count - 1) % 26) * min((count - 1) // 26 + 1, 10)


def _han(count: int) -> str:
    tens, ones = divmod(count, 10)
    if tens >= len(_HAN):
        return "".join(_HAN[int(digit)] for digit in str(count))
    return ("" if tens < 2 else _HAN[tens]) + ("十" if tens else "") + (_HAN[ones] if ones else "")


_FORMS: Mapping[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "decimalZero": "{:02}".format,
    "lowerRoman": _roman,
    "upperRoman": lambda count: _roman(count).upper(),
    "lowerLetter": _letters,
    "upperLetter": lambda count: _letters(count).upper(),
    "chineseCounting": _han,
    "chineseCountingThousand": _han,
    "japaneseCounting": _han,
    "ideographDigital": _han,
}
