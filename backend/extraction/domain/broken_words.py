"""Words that the end of a line parts: whether their hyphen is their own, told by the document they stand in.

Typesetters part most words where no hyphen is; but `e-mail` and `well-known` are parted at theirs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from backend.extraction.domain.blocks import Heading, Paragraph

BROKEN = "\ufffe"
"""A reader puts it behind a hyphen that ends a line where a word may go on."""

_PIECE = r"[^\W\d_]+"
_WORD = re.compile(rf"{_PIECE}(?:-{_PIECE})*")
_ENDS = re.compile(rf"((?:{_PIECE}-)*)({_PIECE})-\Z")
_BEGINS = re.compile(_PIECE)
_SHARES_ITS_END = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou"})
"""Behind these the word follows whose end the word before them has, too, as in `pre- and postwar`."""


def join_broken_words(blocks: Sequence[Heading | Paragraph]) -> Sequence[Heading | Paragraph]:
    """Take away the hyphens that only lines have made, and the marks of all."""
    broken = [place for place, block in enumerate(blocks) if BROKEN in block.text]
    if not broken:
        return blocks
    known = {word for block in blocks for word in _whole_words(block.text)}
    joined = list(blocks)
    for place in broken:
        joined[place] = replace(blocks[place], text="".join(_join(blocks[place].text.split(BROKEN), known)))
    return joined


def _whole_words(text: str) -> Iterator[str]:
    parts = text.split(BROKEN)
    for place, part in enumerate(parts):
        words = _WORD.findall(part)
        yield from words[min(place, 1) : len(words) - (place < len(parts) - 1)]


def _join(parts: Sequence[str], known: set[str]) -> Iterator[str]:
    for part, following in pairwise(parts):
        last_word = part[max(part.rfind(" "), part.rfind("\n")) + 1 :]
        ends, begins = _ENDS.search(last_word), _BEGINS.match(following)
        if ends is None or begins is None or _has_hyphen(ends, begins[0], known):
            yield part
        else:
            yield part[:-1]
        if begins is not None and begins[0] in _SHARES_ITS_END:
            yield " "
    yield parts[-1]


def _has_hyphen(ends: re.Match[str], end: str, known: set[str]) -> bool:
    before, start = ends[1], ends[2]
    if end in _SHARES_ITS_END:
        return True
    if _is_any(f"{start}{end}", known):
        return False
    if before or 1 in (len(start), len(end)) or _is_any(f"{start}-{end}", known):
        # No typesetter parts one letter from a word, nor a word with hyphens elsewhere than there.
        return True
    return start[-1].islower() != end[0].islower() or {start, end} <= known


def _is_any(word: str, known: set[str]) -> bool:
    return not known.isdisjoint((word, word.lower(), word.capitalize()))
