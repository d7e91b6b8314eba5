"""Check `structure`: a candidate's points do not follow the order of a document's headings or of one chunk's list."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from shared.disclosure.source import content_of

MIN_FOLLOWED = 3
"""Two points in the order of a list are chance; three are its outline."""

MIN_SHARED = 0.5
"""The share of a heading's words that a point must hold to stand for it."""

MIN_SHARED_OF_POINT = 0.25
"""The share of a point's words that the heading must be: a sentence that names the topic is about more than it."""

_LONGEST_LABEL = 12
# Blanks are taken possessively: whoever writes documents must not be able to make a search of them take for ever.
_HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,300})$", re.MULTILINE)
_LIST_ITEM = re.compile(r"^[^\S\n]*+(?:[-*+•]|[\d一二三四五六七八九十]{1,3}[.)、．])[^\S\n]*+(.{1,300})$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[^\S\n]*+\|?+[^\S\n]*+([^|\n]{1,200})[^\S\n]*+\|.*$", re.MULTILINE)
_LABEL_END = re.compile(r"[:：.。;；,，]|\s[–—-]\s|\*\*$")

Outline = tuple[frozenset[str], ...]
"""The words of each heading or list item, in their order."""


def outlines_of(text: str) -> list[Outline]:
    """Return the orders of points that a raw chunk has: its headings, its list items, its table's rows."""
    found = [
        outline(_label(match[1]) for match in pattern.finditer(text)) for pattern in (_HEADING, _LIST_ITEM, _TABLE_ROW)
    ]
    return [points for points in found if len(points) >= MIN_FOLLOWED]


def outline(labels: Iterable[str]) -> Outline:
    """Return labels as outlines are compared; of equal ones the first counts."""
    return tuple(dict.fromkeys(point for label in labels if (point := _content(label))))


def follows_outline(points: Sequence[str], outlines: Iterable[Outline]) -> bool:
    """Tell whether raw points, in their order, go along one of the outlines for three of its items or more."""
    contents = [content for point in points if (content := _content(point))]
    return len(contents) >= MIN_FOLLOWED and any(
        _count_followed(contents, points) >= MIN_FOLLOWED for points in outlines
    )


def _count_followed(contents: Sequence[frozenset[str]], points: Outline) -> int:
    """Return the length of the longest row of contents that stand for items in the items' own order."""
    longest = [0] * len(points)
    for content in contents:
        for place in reversed(range(len(points))):
            if _stands_for(len(points[place] & content), points[place], content):
                longest[place] = max(longest[place], 1 + max(longest[:place], default=0))
    return max(longest, default=0)


def _stands_for(shared: int, point: frozenset[str], content: frozenset[str]) -> bool:
    """Tell whether a point is about an item: half of the item, and enough of the point; or all of a point's words."""
    is_half = shared >= MIN_SHARED * len(point) and shared >= MIN_SHARED_OF_POINT * len(content)
    return is_half or shared == len(content)


def _label(line: str) -> str:
    """Return what an item is about: its beginning up to the first sign."""
    bare = line.strip("*_` ")
    return _LABEL_END.split(bare, maxsplit=1)[0] or bare


def _content(label: str) -> frozenset[str]:
    return frozenset(islice(content_of(label), _LONGEST_LABEL))
