"""The check whether the chunks that a search found are evidence for its query.

Scores cannot decide this: in a base of three chunks the best hit scores less than an unrelated one in a base of
thousands. One measure is the share of the query's topical words that the chunks contain; the other is how near the
meaning of a chunk is to that of the query.
"""

import re
from collections.abc import Collection, Sequence

from backend.knowledge.domain.index_entries import index_entry
from backend.knowledge.domain.knowledge import ChunkHit
from backend.knowledge.domain.tokenizing import tokenize
from shared.disclosure.languages import Language, language_of

LEAST_WORDS_SHARE, LEAST_PAIRS_SHARE = 0.2, 0.08
"""The shares of a query's topical words, and of its pairs of Chinese characters, that the chunks must contain.

A query on another topic shares a word or two with any base. Half the pairs of a Chinese query join two words, and
occur in no text.
Measured by `python -m tests.bench.evidence`: of 160 questions for a diagnosis 5 % count as weak in their own base, most
of them because nothing was found; of 300 Chinese questions about other texts 44 % in a base of eight passages, 5 % in
one of 150. Unrelated evidence that passes is left to the secondary model and the gate to refuse.
"""

LEAST_SIMILARITY, LEAST_SIMILARITY_ACROSS = 0.32, 0.22
"""The cosines from which a chunk answers a query in other words than its own: in one language, and across two.

At each, the share of questions about a text of the base that reach it is greater than the share of questions about
something else by more than at any other (Youden's index, over bases of a dozen texts of the corpora). They are measured
with multilingual-e5-small, whose vectors are seen from the middle of their language; docs/retrieval.md has the figures.
"""

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


def evidence_of(
    query: str, hits: Sequence[ChunkHit], translatable_base_ids: Collection[str]
) -> tuple[ChunkHit, ...] | None:
    """Return those of the hits that may answer a query; None where they are too weak.

    What meaning alone has found counts where it is near enough, and in the language of the query or in a base whose
    owner allows that its text is summarised in another language.
    """
    language = language_of(query)
    is_near = [_is_near(hit, language, may_translate=hit.knowledge_base_id in translatable_base_ids) for hit in hits]
    kept = tuple(hit for hit, near in zip(hits, is_near, strict=True) if near or hit.has_words_of_query)
    found_by_words = [hit for hit in hits if hit.has_words_of_query]
    return None if not any(is_near) and is_weak(query, found_by_words) else kept


def _is_near(hit: ChunkHit, language: Language | None, *, may_translate: bool) -> bool:
    """Whether the meaning of a hit answers a query; in a language that nobody has measured none does."""
    if hit.similarity is None or language is None:
        return False
    language_of_hit = language_of(hit.chunk.text)
    if language_of_hit is None or (language_of_hit is not language and not may_translate):
        return False
    if Language.OTHER in (language, language_of_hit):
        return False
    return hit.similarity >= (LEAST_SIMILARITY if language_of_hit is language else LEAST_SIMILARITY_ACROSS)


def is_weak(query: str, hits: Sequence[ChunkHit]) -> bool:
    """Return whether hits are too weak as evidence; for a query without topical words any hits suffice."""
    topical = topical_words(query)
    if not topical:
        return not tokenize(query)
    needed = sum(LEAST_WORDS_SHARE if word.isascii() else LEAST_PAIRS_SHARE for word in topical)
    wanted = [_stem(word) for word in topical]
    found = set[str]()
    for hit in hits:
        found.update(map(_stem, index_entry(hit.chunk).tokens))
        if sum(stem in found for stem in wanted) >= needed:
            return False
    return True


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS]
