"""The check whether the chunks that a search found are evidence for its query.

Whether a search is answered may tell nothing of whether a name, a figure or a rare word stands in a base. So the
frequent words of the query and of the chunks decide, and they alone: no score and no meaning does, because these rest
on all words of a text. Where a query has no other topic than rare words, it is answered whether they stand there or
not. Meaning and everyday words decide which chunks are shown.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from math import fsum

from backend.search.domain.chunks import ChunkHit
from backend.search.domain.tokenizing import tokenize
from shared.disclosure.everyday import keep_everyday
from shared.disclosure.languages import Language, language_of

RAREST_WORD = 4_000
"""The rank, in its language, of the rarest word whose presence an answer may tell of."""

KEPT_CHUNKS = 2_048
"""Chunks whose frequent words are remembered; some are found often."""

LEAST_WORDS_SHARE, LEAST_PAIRS_SHARE = 0.2, 0.08
"""The shares of a query's topical words, and of its pairs of Chinese characters, that are evidence.

A query on another topic shares a word or two with any base. Half the pairs of a Chinese query join two words, and
occur in no text. docs/retrieval.md has questions and figures. Unrelated evidence that passes is left to the secondary
model and the gate to refuse.
"""

MIDDLE_CHUNKS = 24
"""Between the nearest chunk and the middle of so many lies what a chunk has to reach that is shown for its meaning."""

_READ = frozenset((Language.ENGLISH, Language.CHINESE))


def evidence_of(
    query: str, hits: Sequence[ChunkHit], translatable_base_ids: Collection[str], limit: int
) -> tuple[ChunkHit, ...] | None:
    """Return those of the hits that may answer a query, `limit` at most; None where all of them are too weak.

    What stands in another language than the query counts only in a base whose owner allows that its text is summarised
    in another language. There no word can be compared, so that whatever is near is evidence.
    """
    language, asked = language_of(query), keep_everyday(query, RAREST_WORD)
    found = [hit for hit in hits if hit.has_words_of_query]
    if language not in _READ or all(hit.similarity is None for hit in hits):
        is_told = topical_words(asked) or find_words(tokenize(asked), found, asked)
        return None if is_weak(asked, found) else tuple(found[:limit] if is_told else ())
    its = [hit for hit in hits if language_of(hit.chunk.text) is language]
    in_language = () if is_weak(asked, [hit for hit in its if hit.has_words_of_query]) else _near(its)
    across = _near(_translatable(language, hits, translatable_base_ids))
    kept = {hit.chunk.id for hit in (*in_language, *across)}
    return tuple(hit for hit in hits if hit.chunk.id in kept)[:limit] or None


def _translatable(language: Language | None, hits: Sequence[ChunkHit], base_ids: Collection[str]) -> list[ChunkHit]:
    """Return the compared hits in the other language, if the owner of their base allows it."""
    [other] = _READ - {language}
    allowed = [hit for hit in hits if hit.knowledge_base_id in base_ids and hit.similarity is not None]
    return [hit for hit in allowed if language_of(hit.chunk.text) is other]


def _near(hits: Sequence[ChunkHit]) -> Iterator[ChunkHit]:
    """Yield hits that words found, and those that are nearer than the middle between the nearest and the others."""
    nearest = sorted((hit.similarity for hit in hits if hit.similarity is not None), reverse=True)[:MIDDLE_CHUNKS]
    least = (nearest[0] + fsum(nearest) / len(nearest)) / 2 if nearest else 0.0
    yield from (hit for hit in hits if hit.has_words_of_query or _similarity(hit) >= least)


def is_weak(asked: str, hits: Sequence[ChunkHit]) -> bool:
    """Return whether hits are too weak by their words; for a query without topical words any hits suffice."""
    topical = topical_words(asked)
    needed = sum(LEAST_WORDS_SHARE if word.isascii() else LEAST_PAIRS_SHARE for word in topical)
    return not tokenize(asked) or len(find_words(topical, hits, asked)) < needed


def _similarity(hit: ChunkHit) -> float:
    return -1.0 if hit.similarity is None else hit.similarity


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


def topical_words(query: str) -> frozenset[str]:
    """Return the index tokens of a query that name its topic; "What are the biggest risks?" has none."""
    tokens = tokenize(_FUNCTION_PHRASES.sub(" ", query))
    return frozenset(word for word in tokens if word not in _FUNCTION_WORDS and _FUNCTION_CHARACTERS.isdisjoint(word))


def find_words(wanted: Collection[str], hits: Iterable[ChunkHit], asked: str) -> frozenset[str]:
    """Return which of these words stand, in any form, in hits that the frequent words of a query would find alone."""
    missing, tokens = set(wanted), frozenset(tokenize(asked))
    for hit in hits:
        told = _frequent_tokens(hit.chunk.join_headings) if missing else frozenset[str]()
        stems = frozenset(map(_stem, told)) if tokens.intersection(told) else frozenset[str]()
        missing = {word for word in missing if _stem(word) not in stems}
    return frozenset(wanted) - missing


@lru_cache(maxsize=KEPT_CHUNKS)
def _frequent_tokens(text: str) -> frozenset[str]:
    return frozenset(tokenize(keep_everyday(text, RAREST_WORD)))


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS]
