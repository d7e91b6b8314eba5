"""The check whether the chunks that a search found are evidence for its query.

Scores cannot decide this: in a base of three chunks the best hit scores less than an unrelated one in a base of
thousands. Two measures can: the share of the query's topical words that the chunks contain, and how near their meaning
is to that of the query. Where chunks have been compared by meaning, both are weighed together; else words decide alone.
"""

from collections.abc import Collection, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from backend.embeddings.domain import WritingSystem, writing_system_of
from backend.restricted.domain.topical_words import found_words, speaks_for_an_organisation, topical_words
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.domain.tokenizing import tokenize
from shared.disclosure.languages import Language, language_of

LEAST_WORDS_SHARE, LEAST_PAIRS_SHARE = 0.2, 0.08
"""The shares of a query's topical words, and of its pairs of Chinese characters, that are evidence by words alone.

A query on another topic shares a word or two with any base. Half the pairs of a Chinese query join two words, and
occur in no text.
Measured by `python -m tests.bench.evidence`: of 160 questions for a diagnosis 5 % count as weak in their own base, most
of them because nothing was found; of 300 Chinese questions about other texts 44 % in a base of eight passages, 5 % in
one of 150. Unrelated evidence that passes is left to the secondary model and the gate to refuse.
"""

WORDS_WORTH, MIDDLE_WORTH = 0.7, 2.0
"""What the share of the words, and the middle of the nearest chunks, are worth beside the nearest chunk.

The nearest chunk tells whether a text answers the query, the middle of the 24 nearest whether the base is about such
things at all: a question for the biggest gaps in an organisation is near to no chunk, and not far from any.
"""

MIDDLE_CHUNKS = 24


class Bars(NamedTuple):
    """What has to be reached: by words and meaning in the query's language, and by meaning alone across languages."""

    english: float
    chinese: float
    across: float


BARS, BARS_OF_LARGE_BASES = Bars(0.70, 0.48, 0.30), Bars(0.86, 0.68, 0.26)
"""The weights and bars are those of a logistic rule, rounded; docs/retrieval.md has its questions and figures.

They hold for multilingual-e5-small, whose vectors are seen from the middle of their language. A Chinese query reaches
less because half its pairs join two words. In a large base, where only the nearest `FUSION_DEPTH` chunks are known,
their middle says nothing: any question is near to some of thousands. So it does not count there.
"""

_SYSTEMS = {Language.ENGLISH: WritingSystem.LATIN, Language.CHINESE: WritingSystem.HAN}


class _Found(NamedTuple):
    """What a search found for a query: `first` are the hits that may be shown, `compared` all that have a similarity.

    The latter are sorted, the nearest first.
    """

    query: str
    language: Language
    first: Sequence[ChunkHit]
    compared: Sequence[ChunkHit]

    @property
    def is_large(self) -> bool:
        """Whether there may be chunks that were not compared."""
        return len(self.compared) >= FUSION_DEPTH

    @property
    def bars(self) -> Bars:
        """The bars of a base of this size."""
        return BARS_OF_LARGE_BASES if self.is_large else BARS


def evidence_of(
    query: str, hits: Sequence[ChunkHit], translatable_base_ids: Collection[str], limit: int
) -> tuple[ChunkHit, ...] | None:
    """Return those of the first `limit` hits that may answer a query; None where all hits together are too weak.

    What stands in another language than the query counts only in a base whose owner allows that its text is summarised
    in another language.
    """
    language = language_of(query)
    first = hits[:limit]
    compared = [hit for hit in hits if hit.similarity is not None]
    if not compared or language is None or language not in _SYSTEMS:
        by_words = tuple(hit for hit in first if hit.has_words_of_query)
        return None if is_weak(query, by_words) else by_words
    found = _Found(query, language, first, sorted(compared, key=_similarity, reverse=True))
    kept = {hit.chunk.id for hit in (*_in_language(found), *_across(found, translatable_base_ids))}
    chosen = tuple(hit for hit in first if hit.chunk.id in kept)
    return chosen if chosen or not topical_words(query) else None


def _in_language(found: _Found) -> Iterator[ChunkHit]:
    """Yield the hits in the language of the query, if words and meaning together reach the bar."""
    system = _SYSTEMS[found.language]
    first = [hit for hit in found.first if writing_system_of(hit.chunk.searched_text) is system]
    nearest = _nearest(found.compared, system)
    with_words = [hit for hit in first if hit.has_words_of_query]
    bar = found.bars.chinese if found.language is Language.CHINESE else found.bars.english
    share = words_share(found.query, with_words)
    if share is None or nearness(nearest, is_large=found.is_large) + WORDS_WORTH * share >= bar:
        chosen = _near(first, nearest)
    else:
        chosen = iter(() if _is_weak_without_vectors(found, with_words) else with_words)
    yield from (hit for hit in chosen if language_of(hit.chunk.text) is found.language)


def _across(found: _Found, translatable_base_ids: Collection[str]) -> Iterator[ChunkHit]:
    """Yield the hits in the other language, if the owner of their base allows it and meaning reaches the bar."""
    allowed = [hit for hit in found.compared if hit.knowledge_base_id in translatable_base_ids]
    [other] = set(_SYSTEMS) - {found.language}
    nearest = _nearest(allowed, _SYSTEMS[other])
    is_enough = nearness(nearest, is_large=found.is_large) >= found.bars.across or not topical_words(found.query)
    if nearest and is_enough:
        ids = {hit.chunk.id for hit in allowed}
        first = [hit for hit in found.first if hit.chunk.id in ids]
        yield from (hit for hit in _near(first, nearest) if language_of(hit.chunk.text) is other)


def _nearest(compared: Sequence[ChunkHit], system: WritingSystem) -> list[float]:
    """Return the similarities of the nearest hits in these letters."""
    its = [_similarity(hit) for hit in compared if writing_system_of(hit.chunk.searched_text) is system]
    return its[:MIDDLE_CHUNKS]


def _near(hits: Sequence[ChunkHit], nearest: Sequence[float]) -> Iterator[ChunkHit]:
    """Yield hits that words found, and those that are nearer than the middle between the nearest and the others."""
    least = (nearest[0] + fmean(nearest)) / 2 if nearest else 0.0
    yield from (hit for hit in hits if hit.has_words_of_query or _similarity(hit) >= least)


def nearness(similarities: Sequence[float], *, is_large: bool) -> float:
    """Return how near a base is to a query, by its nearest chunk and, unless it is large, by the middle of some."""
    if not similarities:
        return 0.0
    return similarities[0] + (0.0 if is_large else MIDDLE_WORTH * fmean(similarities))


def words_share(query: str, hits: Sequence[ChunkHit]) -> float | None:
    """Return which share of a query's topical words stands in the hits; None for a query without such words.

    It is drawn to a half, the more the fewer words there are: one of one tells less than five of five. Whoever says
    "we" has named the organisation, which any of its texts is about.
    """
    topical = topical_words(query)
    if not topical:
        return None
    named = 1 if speaks_for_an_organisation(query) else 0
    return (len(found_words(topical, hits)) + named + 0.5) / (len(topical) + named + 1)


def _is_weak_without_vectors(found: _Found, with_words: Sequence[ChunkHit]) -> bool:
    """Whether the hits that have no vector yet are weak; in a large base a hit without a similarity may just be far."""
    return found.is_large or is_weak(found.query, [hit for hit in with_words if hit.similarity is None])


def is_weak(query: str, hits: Sequence[ChunkHit]) -> bool:
    """Return whether hits are too weak by their words alone; for a query without topical words any hits suffice."""
    topical = topical_words(query)
    if not topical:
        return not tokenize(query)
    needed = sum(LEAST_WORDS_SHARE if word.isascii() else LEAST_PAIRS_SHARE for word in topical)
    return len(found_words(topical, hits)) < needed


def _similarity(hit: ChunkHit) -> float:
    return -1.0 if hit.similarity is None else hit.similarity
