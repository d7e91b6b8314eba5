"""One ranking of two: chunks that were found by their words, and chunks that were found by what they mean."""

from collections.abc import Sequence

from backend.knowledge.domain.bm25 import SCORE_DECIMALS
from backend.knowledge.domain.knowledge import ChunkHit
from backend.meaning.domain import writing_system_of

FUSION_DEPTH = 100
"""How far both rankings are read."""

FUSION_K = 10
"""How slowly a place in a ranking loses its worth; no value of the grid in docs/retrieval.md is better."""

WORDS_ACROSS_LANGUAGES = 0.25
"""What a place in the ranking by words is worth where the nearest meaning is in other letters than the question.

The answer then stands in a language whose words the question does not have; what shares its words is something else.
"""

_FARTHEST = -2.0

RERANKED_HITS = 50
"""How many of the first hits a reranker reads."""


def weight_of_words(query: str, by_meaning: Sequence[ChunkHit]) -> float:
    """Return what a place in the ranking by words is worth, beside one in that by meaning."""
    if not by_meaning or writing_system_of(query) is writing_system_of(by_meaning[0].chunk.text):
        return 1.0
    return WORDS_ACROSS_LANGUAGES


def fuse(
    by_words: Sequence[ChunkHit], by_meaning: Sequence[ChunkHit], k: int = FUSION_K, words: float = 1.0
) -> tuple[ChunkHit, ...]:
    """Join two rankings by reciprocal rank fusion: a chunk that is first in both has the score 1.

    A place in `by_words` is worth `words` times as much as one in `by_meaning`.
    Scores depend on places alone, and thereby on nothing but the searched bases. Of equal scores the nearer meaning
    comes first: a question in another language than its answer shares words with other texts alone.
    The scores of `by_meaning` are cosines; each hit keeps its own as `similarity`.
    """
    sums: dict[str, float] = {}
    for ranking, worth in ((by_words, words), (by_meaning, 1.0)):
        for place, hit in enumerate(ranking[:FUSION_DEPTH], start=1):
            sums[hit.chunk.id] = sums.get(hit.chunk.id, 0.0) + worth * (k + 1) / (k + place) / (1 + words)
    found_by_words = {hit.chunk.id for hit in by_words}
    similarities = {hit.chunk.id: hit.score for hit in by_meaning}
    hits = {hit.chunk.id: hit for hit in (*by_meaning, *by_words) if hit.chunk.id in sums}
    fused = (
        hit.model_copy(
            update={
                "score": round(sums[chunk_id], SCORE_DECIMALS),
                "similarity": similarities.get(chunk_id),
                "has_words_of_query": chunk_id in found_by_words,
            }
        )
        for chunk_id, hit in hits.items()
    )
    return tuple(sorted(fused, key=content_rank))


def reordered(hits: Sequence[ChunkHit], preferences: Sequence[float]) -> tuple[ChunkHit, ...]:
    """Order the first hits by a preference for each of them, greater for the better one; equal ones stay in order.

    Scores stay with the places: the best hit has the best score, on whatever scale the preferences are.
    """
    places = sorted(range(len(preferences)), key=lambda place: -preferences[place])
    first = (
        hits[place].model_copy(update={"score": better.score}) for place, better in zip(places, hits, strict=False)
    )
    return (*first, *hits[len(preferences) :])


def content_rank(hit: ChunkHit) -> tuple[object, ...]:
    """Return what hits are sorted by: the best score, the nearest meaning, then by content and never by arrival.

    A hit that its words alone have found lies farther than any cosine.
    """
    nearness = _FARTHEST if hit.similarity is None else hit.similarity
    return (-hit.score, -nearness, hit.chunk.text, hit.document_name, hit.chunk.ordinal)
