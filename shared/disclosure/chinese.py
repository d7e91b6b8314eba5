"""Chinese text cut into words, and which of them are known and everyday."""

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import filterfalse, groupby

from shared.disclosure.word_lists import ranks

UNRANKED_HAN = 100_000
"""The rank that stands for every word that is not everyday."""

_LONGEST_WORD = 4
RECURRING = ("每", "每个")
_SPANS = frozenset(("天", "日", "周", "星期", "月", "季度"))

_PAIR_OF_SPANS = re.compile("两个?(?:[天日周月年]|星期|小时|分钟|季度)")
_SPREAD = 50.0
"""Flattens the ranks of the most frequent words, which are nearer to each other than Zipf's law says."""

_UNKNOWN_COST = 18.0
"""Of a character that is no word by itself: more than that of the rarest word."""

_UNLIKELY_COST, _SHORTEST_UNLIKELY = 7.7, 17
"""The mean cost of a character that no honest sentence of so many characters reaches: of 2,000 the dearest has 7.42."""

FUNCTION_RANK = 60
"""Words that are more frequent than this join others and say nothing by themselves."""


@lru_cache(maxsize=2_048)
def segment(han: str) -> tuple[str, ...]:
    """Cut a stretch of simplified Chinese characters into those words whose frequencies have the largest product."""
    end_of_text = len(han)
    costs, starts = [0.0] + [math.inf] * end_of_text, [0] * (end_of_text + 1)
    for start in range(end_of_text):
        for end in range(start + 1, min(start + _LONGEST_WORD, end_of_text) + 1):
            cost = _cost(han[start:end])
            if cost is not None and costs[start] + cost < costs[end]:
                costs[end], starts[end] = costs[start] + cost, start
    found: list[str] = []
    while end_of_text:
        found.append(han[starts[end_of_text] : end_of_text])
        end_of_text = starts[end_of_text]
    return tuple(reversed(found))


def is_everyday_han(word: str) -> bool:
    """Whether a word is among the everyday ones."""
    return word in ranks("chinese_everyday")


def is_known_han(word: str) -> bool:
    """Whether a word is in the dictionary of words that name nothing and state neither a quantity nor a time."""
    return word in ranks("chinese_everyday") or word in ranks("chinese_dictionary")


def is_withheld_han(word: str) -> bool:
    """Whether a word is a name, a place, a quantity or a time."""
    return word in ranks("chinese_withheld")


def comes_again(word: str, before: str) -> bool:
    """Whether a word is a span of time and the one before it makes of it a time that comes again: 每个季度."""
    return word in _SPANS and before in RECURRING


def pairs_of_spans(han: str) -> list[str]:
    """Return each limit of two spans of time, however the characters behind it are cut into words: 两周 of 两周期限."""
    return _PAIR_OF_SPANS.findall(han)


def is_function_han(word: str) -> bool:
    """Whether a word is among those that join others and say nothing by themselves."""
    return han_rank(word) < FUNCTION_RANK


def rows(words: Iterable[str], rank: int = FUNCTION_RANK) -> Iterator[str]:
    """Yield, joined, each row of words of one character that are not more frequent than this rank."""
    for is_lone, row in groupby(
        words, key=lambda word: len(word) == 1 and not word.isascii() and han_rank(word) >= rank
    ):
        if is_lone:
            yield "".join(row)


def han_rank(word: str) -> int:
    """Return the rank of a word; `UNRANKED_HAN` for a word that is not everyday."""
    return ranks("chinese_everyday").get(word, UNRANKED_HAN)


def is_unlikely(words: Iterable[str]) -> bool:
    """Whether words in a row are so rare for their length that no sentence has them: rows of characters, riddles."""
    found = [*filter(str.isalpha, filterfalse(str.isascii, words))]
    length = len("".join(found))
    return length >= _SHORTEST_UNLIKELY and sum(map(_cost_of, found)) > _UNLIKELY_COST * length


def _cost_of(word: str) -> float:
    return _cost(word) or _UNKNOWN_COST


def _cost(word: str) -> float | None:
    """Return the cost of a word, the negative logarithm of its frequency but for a constant; None for no word."""
    for name, offset in (("chinese_everyday", 0), ("chinese_withheld", 0), ("chinese_dictionary", 30_000)):
        found = ranks(name).get(word)
        if found is not None:
            return math.log(found + offset + _SPREAD) + 2.5
    return _UNKNOWN_COST if len(word) == 1 else None
