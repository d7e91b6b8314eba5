"""The everyday frame of a finding, beyond which nothing is said to a question that names a subject.

Advice is said in words that advice about anything is said in: *risk*, *owner*, *review*, 责任, 依赖. What tells a fact
of somebody is said in others: with what, where, since when.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shared.disclosure.canonical import Piece
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, list_written
from shared.disclosure.word_lists import members
from shared.disclosure.words import Finding, rareness
from shared.models.safe_summary import LEAST_SUPPORT, GateCode

FREQUENT_SHARE = 0.02
"""A word among so large a share of the everyday ones is everybody's."""

_ABSTRACT = re.compile(
    r"(?:tion|sion|ness|ments?|it(?:y|ies)|[ae]nc(?:e|es|y)|ship|ism|[ai]bl[ey]|ive|ous|ly|ful|less|al|iz(?:e|ed|ing))$"
    r"|^(?:un|over|under|mis|dis|non|in|re)[a-z]{4,}"
)
"""English words for what is thought of and judged, not seen: "dependence", "unclear", "misuse"."""


class BaseRules(NamedTuple):
    """What the owners of the searched bases have said of them.

    `support` is the number of documents in which a word has to stand to say nothing of any of them; `has_records` tells
    that what a passage begins with, or is headed by, is a subject.
    """

    support: int = LEAST_SUPPORT
    has_records: bool = False


USUAL_RULES = BaseRules()


@dataclass(frozen=True, slots=True)
class Support:
    """The stems and Chinese words of the passages that were shown, by document, and in how many a word must stand."""

    documents: tuple[tuple[str, frozenset[str]], ...]
    least: int

    @classmethod
    def of(cls, titles: Iterable[str], readings: Iterable[SourceReading], least: int) -> "Support":
        """Put the words of chunks with the titles of their documents."""
        rows = zip(titles, readings, strict=True)
        return cls(tuple((title, words) for title, each in rows for words in (each.stems, each.han_words)), least)

    def tells(self, content: str, written: str) -> bool:
        """Tell whether a word says something of few documents: those shown have it, or it is seldom used in advice."""
        holding = len({title for title, words in self.documents if content in words})
        if holding >= self.least or rareness(content) < FREQUENT_SHARE or content in members("frame_common"):
            return False
        return holding > 0 or not (content in members("frame_seldom") or _is_abstract(written))


def find_beyond_frame(fields: Iterable[Sequence[Piece]], support: Support, own: OwnWords) -> Iterator[Finding]:
    """Yield the words of an answer that tell something, but for those that the user has written."""
    for field in fields:
        for content, word in list_written(field):
            if not own.holds_content(content) and support.tells(content, word):
                yield Finding(GateCode.CONTAINMENT, word)


def _is_abstract(word: str) -> bool:
    return word.isascii() and _ABSTRACT.search(word) is not None
