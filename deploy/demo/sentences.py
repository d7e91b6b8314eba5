"""Find the sentences that fit a question, in English and Chinese, by the words they share."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from shared.disclosure.word_lists import ranks

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(r"[a-z0-9]{2,}|[0-9]")
_BLOCK_START = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+[.)、]))")
_LEADING_MARK = re.compile(r"^\s*(?:#{1,6}\s+|[-*]\s+|\d+[.)、]\s*)")
_BROKEN_CHINESE = re.compile(f"(?<=[{_CJK}，。；：、])\\s*\\n\\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)\s+(?=\S)|(?<=[。！？；])\s*")
_MOST_FREQUENT = 150
"""So many words of a language tell nothing of what a question is about: "how", "many" and "get" are among them."""
_RANK_STEP = 0.1
_SHORT = 3
_DOUBLED_END = re.compile(r"([bdgmnprt])\1$")
_LAST_VOWEL = re.compile(r"(?:ie|e|y)$")
_HEADING_SHARE, _TITLE_SHARE = 0.6, 0.3
MIN_SENTENCE_CHARACTERS, MAX_SENTENCE_CHARACTERS = 4, 400


@dataclass(frozen=True)
class Passage:
    """A numbered document of a tool result; `rank` is its place in what a search found, 0 for the best."""

    number: int
    title: str
    content: str
    rank: int = 0


@dataclass(frozen=True)
class Quote:
    """A sentence and the document it is from."""

    number: int
    text: str


def is_chinese(text: str) -> bool:
    """Tell whether an answer in Chinese is wanted."""
    return _CJK_RUN.search(text) is not None


def terms(text: str) -> set[str]:
    """Return what two texts are compared by: words without their endings, and pairs of Chinese characters.

    What is most frequent in its language is left out, and so are pairs that are no word and hold such a character.
    """
    words = {_stem(word) for word in _WORD.findall(text.lower()) if not _is_frequent("english_everyday", word)}
    pairs = {run[at : at + 2] for run in _CJK_RUN.findall(text) for at in range(len(run) - 1)}
    return words | {pair for pair in pairs if not _is_frequent_pair(pair)}


def sentences(content: str) -> list[tuple[str, str]]:
    """Split a document's text into sentences, each with the heading it stands under.

    List items and table rows stand alone.
    """
    heading, found = "", list[tuple[str, str]]()
    for block in _BLOCK_START.split(content):
        if block.lstrip().startswith("#"):
            heading, _, block = block.lstrip("# \n").partition("\n")
        text = " ".join(_BROKEN_CHINESE.sub("", _LEADING_MARK.sub("", block)).split())
        found += [(heading, part.strip()[:MAX_SENTENCE_CHARACTERS]) for part in _SENTENCE_END.split(text)]
    return [(heading, text) for heading, text in found if len(text) >= MIN_SENTENCE_CHARACTERS]


def best_quotes(question: str, passages: Sequence[Passage], at_most: int = 3) -> list[Quote]:
    """Choose the sentences that share the rarest terms with the question, in the order of the documents.

    Terms of the heading and of the title count for less, and so do passages that a search ranks lower. A sentence must
    be half as good as the best.
    """
    wanted = terms(question)
    candidates = [(passage, *found) for passage in passages for found in sentences(passage.content)]
    shared = [(wanted & terms(text), wanted & terms(heading)) for _, heading, text in candidates]
    frequency = Counter(term for in_text, in_heading in shared for term in in_text | in_heading)
    weights = {term: math.log(1 + len(candidates) / count) for term, count in frequency.items()}
    scores = [
        (
            _weight(in_text, weights)
            + _HEADING_SHARE * _weight(in_heading - in_text, weights)
            + _TITLE_SHARE * _weight((wanted & terms(passage.title)) - in_text - in_heading, weights)
        )
        / (1 + _RANK_STEP * passage.rank)
        for (passage, _, _), (in_text, in_heading) in zip(candidates, shared, strict=True)
    ]
    ranked = sorted(range(len(candidates)), key=lambda place: (-scores[place], place))
    chosen = [place for place in ranked[:at_most] if scores[place] > 0 and scores[place] * 2 >= scores[ranked[0]]]
    return [Quote(candidates[place][0].number, candidates[place][2]) for place in sorted(chosen)]


def _weight(found: set[str], weights: dict[str, float]) -> float:
    return sum(weights.get(term, 1.0) for term in sorted(found))


def _is_frequent(language: str, word: str) -> bool:
    return ranks(language).get(word, _MOST_FREQUENT) < _MOST_FREQUENT


def _is_frequent_pair(pair: str) -> bool:
    known = ranks("chinese_everyday")
    return any(_is_frequent("chinese_everyday", part) for part in ((pair,) if pair in known else pair))


def _stem(word: str) -> str:
    """Return a word without the endings of its forms: "employees" and "employee", "policies" and "policy" are one."""
    if len(word) > _SHORT and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word.removesuffix("s")
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORT and not word.endswith("eed"):
            word = _DOUBLED_END.sub(r"\1", word.removesuffix(ending))
    return _LAST_VOWEL.sub("", word) if len(word) > _SHORT else word
