"""Whether what a search found has to do with what was asked.

Scores do not tell: in a base of three chunks the best hit scores less than a stray one in a base of thousands.
What tells is how many of the query's topical words stand in what was found.
"""

from collections.abc import Sequence

from backend.domain.index_entries import index_entry
from backend.domain.knowledge import Hit
from backend.domain.tokenizing import tokenize

LEAST_WORDS_SHARE, LEAST_PAIRS_SHARE = 0.2, 0.08
"""One topical word in five: a query about something else shares a stray word or two with any base.

As Chinese is indexed by pairs of neighbours, half the pairs of a query are halves of two words, and stand nowhere.

Measured: of 160 questions for a diagnosis 3.1 % are refused in their own base, more than half of them since nothing
was found; of 300 Chinese questions about other texts 61 % in a base of eight passages, 8 % in one of 150; of 200
English headings of another organisation 38 %. What gets past is for the secondary model to refuse, and the gate.
"""

_STEM_LETTERS = 4
"""Letters by which words are taken for forms of one, as "outage" and "outages"; of longer ones more are refused."""

_FUNCTION_WORDS = frozenset(
    """
    a about above after all also am an and any are as at be been being but by can could did do does doing for from get
    give had has have having he her here him his how i if in into is it its just know let like may me might more most
    much must my no not of on or our out please shall she should show so some such tell than that the their them then
    there these they this those to up us very was we were what when where which who whom whose why will with would you
    your
    advice analyse analysis analyze assess assessment diagnose diagnosis gap gaps improve improvement improvements issue
    issues main overview priorities priority problem problems recommend recommendation recommendations review risk risks
    summarise summarize summary weakness weaknesses
    风险 差距 优先 建议 诊断 改进 改善 问题 分析 评估 总结 主要 不足
    """.split()  # noqa: SIM905 -- read as words
)
_FUNCTION_CHARACTERS = frozenset("的了么什怎吗呢吧啊们是有在和与或及就都也还这那哪我你他她它请把被对为几")
"""Words of asking and of grammar, and words for the help that is wanted: they say nothing of a topic.

A pair of characters, as Chinese is indexed, says nothing either where one of them is such a character: mostly the two
belong to two words.
"""


def is_weak(query: str, hits: Sequence[Hit]) -> bool:
    """Say whether the hits are no ground for an answer; of a query without topical words, every hit is one."""
    if not hits:
        return True
    topical = frozenset(word for word in tokenize(query) if _is_topical(word))
    if not topical:
        return False
    found = frozenset(_stem(word) for hit in hits for word in index_entry(hit.chunk).tokens)
    needed = sum(LEAST_WORDS_SHARE if word.isascii() else LEAST_PAIRS_SHARE for word in topical)
    return sum(_stem(word) in found for word in topical) < needed


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS]


def _is_topical(word: str) -> bool:
    return word not in _FUNCTION_WORDS and _FUNCTION_CHARACTERS.isdisjoint(word)
