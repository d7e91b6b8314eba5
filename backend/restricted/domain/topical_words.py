"""The words of a question that name what it is about."""

import re
from collections.abc import Collection, Iterable

from backend.search.domain.chunks import ChunkHit
from backend.search.domain.tokenizing import tokenize

_STEM_LETTERS = 4
"""Words with the same first letters count as forms of one ("outage", "outages"); longer stems refuse more queries."""

_FUNCTION_WORDS = frozenset(
    """
    a about above after all also am an and any are as at be been being but by can could did do does doing for from get
    give had has have having he her here him his how i if in into is it its just know let like may me might more most
    much must my no not of on or our out please shall she should show so some such tell than that the their them then
    there these they this those to up us very was we were what when where which who whom whose why will with would you
    your
    advice advise analyse analysis analyze area areas assess assessment bad badly biggest diagnose diagnosis fail
    failing first fix gap gaps going good help improve improvement improvements issue issues look main matter matters
    missing most need needs next now overall overview priorities priority problem problems recommend recommendation
    recommendations review risk risks situation start summarise summarize summary thing things top urgent weak weakest
    weakness weaknesses wrong too away mature
    """.split()  # noqa: SIM905 -- read as words
)
_FUNCTION_PHRASES = re.compile(
    "主要|最大|最重要|最紧迫|最紧急|紧迫|风险|隐患|差距|优先|建议|诊断|改进|改善|解决|问题|分析|评估|总结|不足|薄弱|环节|弱点|短板|"
    "漏洞|缺陷|缺口|情况|现状|整体|总体|目前|现在|方面|地方|事项|首先|应该|应当|需要|值得|关注|注意|哪些|什么|怎么|怎样|如何|为什么|给出|"
    "提出|看法|意见|帮助|一下|我们|减少|现象|管理|角度|谈谈|十分|紧急|容易|忽视|判断|好转|恶化|充分|准备|关心"
)
_FUNCTION_CHARACTERS = frozenset("的了么什怎吗呢吧啊们是有在和与及或就都也还这那哪我你他她它请把被对为几最该给做先从")
"""Question words, grammatical words, and words for the help that is wanted: none of them names a topic.

A pair of Chinese characters, the unit of the index, names no topic either if one of them is such a character: mostly
the two belong to two words.
"""

_WE = re.compile(r"\b(?:we|us|our|ours)\b|我们|咱们|我司|本公司")


def topical_words(query: str) -> frozenset[str]:
    """Return the index tokens of a query that name its topic; "What are the biggest risks?" has none."""
    tokens = tokenize(_FUNCTION_PHRASES.sub(" ", query))
    return frozenset(word for word in tokens if word not in _FUNCTION_WORDS and _FUNCTION_CHARACTERS.isdisjoint(word))


def found_words(wanted: Collection[str], hits: Iterable[ChunkHit]) -> frozenset[str]:
    """Return which of these words stand in a hit, in any form; no more hits are read than it takes to find all."""
    missing = set(wanted)
    for hit in hits:
        if not missing:
            break
        stems = {_stem(token) for token in tokenize(hit.chunk.searched_text)}
        missing = {word for word in missing if _stem(word) not in stems}
    return frozenset(wanted) - missing


def speaks_for_an_organisation(query: str) -> bool:
    """Whether the asker says "we", and so means the organisation whose texts are searched."""
    return _WE.search(query.lower()) is not None


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS]
