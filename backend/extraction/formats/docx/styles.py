"""Styles of a DOCX: which paragraphs are headings, which text is hidden, which paragraphs are numbered."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from backend.extraction.formats.office_xml import children_of, first_child, is_on, value

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_BODY_LEVEL = 9
"""The outline level of a paragraph that is no heading."""


class NumberedAs(NamedTuple):
    """The list of a paragraph, and its level in the list."""

    list_id: str
    level: int


class Styles:
    """The styles of one document."""

    def __init__(self, root: Element | None) -> None:
        self._styles: Mapping[str, Element] = {
            value(style, "w:styleId") or "": style for style in children_of(root, "w:style")
        }
        self._default = next(
            (
                name
                for name, style in self._styles.items()
                if value(style, "w:type") == "paragraph" and value(style, "w:default") in ("1", "true")
            ),
            None,
        )

    def find_level(self, properties: Element | None) -> int | None:
        """Return the level of a paragraph that is a heading: by itself, its style, or what its style is based on."""
        own = value(first_child(properties, "w:outlineLvl"))
        if own is not None and own.isdecimal():
            return _level(int(own))
        for style in self._chain(value(first_child(properties, "w:pStyle"))):
            outline = value(first_child(style, "w:pPr", "w:outlineLvl"))
            if outline is not None and outline.isdecimal():
                return _level(int(outline))
            name = value(first_child(style, "w:name")) or ""
            if name.lower() == "title":
                return 1
            if found := _HEADING.fullmatch(name):
                return int(found[1])
        return None

    def find_list(self, properties: Element | None) -> NumberedAs | None:
        """Return the list in which a paragraph is, by itself or its style."""
        level = None
        for holder in (properties, *(first_child(style, "w:pPr") for style in self._chain(_style_of(properties)))):
            numbered = first_child(holder, "w:numPr")
            if level is None:
                level = value(first_child(numbered, "w:ilvl"))
            list_id = value(first_child(numbered, "w:numId"))
            if list_id is not None:
                return None if list_id == "0" else NumberedAs(list_id, int(level or 0))
        return None

    def list_of_style(self, style_id: str | None) -> str | None:
        """Return the list that a style of lists stands for."""
        return value(first_child(self._styles.get(style_id or ""), "w:pPr", "w:numPr", "w:numId"))

    def hides(self, run: Element | None, paragraph: Element | None) -> bool:
        """Say whether a run is hidden: by itself, its style, or the style of its paragraph."""
        styles = (
            *self._chain(value(first_child(run, "w:rStyle"))),
            *self._chain(_style_of(paragraph) or self._default),
        )
        marks = (
            first_child(holder, "w:vanish") for holder in (run, *(first_child(style, "w:rPr") for style in styles))
        )
        return is_on(next((mark for mark in marks if mark is not None), None))

    def _chain(self, style_id: str | None) -> Iterator[Element]:
        seen = set[str]()
        while style_id is not None and style_id in self._styles and style_id not in seen:
            seen.add(style_id)
            yield self._styles[style_id]
            style_id = value(first_child(self._styles[style_id], "w:basedOn"))


def _style_of(properties: Element | None) -> str | None:
    return value(first_child(properties, "w:pStyle"))


def _level(outline: int) -> int | None:
    return outline + 1 if outline < _BODY_LEVEL else None
