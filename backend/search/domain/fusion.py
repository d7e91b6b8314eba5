"""One ranking of two: chunks that were found by their words, and chunks that were found by what they mean."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from backend.search.domain.bm25 import SCORE_DECIMALS, show_score
from backend.search.domain.chunks import ChunkHit

FUSION_DEPTH = 100
"""How far both rankings are read."""

FUSION_K = 10
"""How slowly a place in a ranking loses its worth; docs/retrieval.md has the grid."""

HALF_SHARE = 0.4
"""The share of the query's words at which a place in the ranking by words is worth half.

A chunk that answers the query in its own language has a fifth to two fifths of its words, weighed by their rarity; one
that shares words by chance, because the answer stands in another language, has half of that. docs/retrieval.md has
the grid.
"""

RERANKED_HITS = 50
"""How many of the first hits a reranker reads."""

_FARTHEST = -2.0
_LEAST_WORTH = 0.01
"""What a place is worth at least: even the nearest chunk may be far away."""


class _Place(NamedTuple):
    """The place of a chunk in a ranking, from 1, and what the ranking measured."""

    number: int
    measured: float

    @property
    def worth(self) -> float:
        return max(self.measured, _LEAST_WORTH)


def score_by_words(hit: ChunkHit, greatest_score: float) -> ChunkHit:
    """Return a hit with the score that callers see, and its share of the query's words, instead of BM25's score."""
    share = min(hit.score / greatest_score, 1.0) if greatest_score else 0.0
    return hit.model_copy(
        update={"score": show_score(hit.score), "share_of_words": round(share, SCORE_DECIMALS)},
    )


class Rankings(NamedTuple):
    """What a question finds by words and by meaning, best first, and the chunks among the former without a vector."""

    by_words: Sequence[ChunkHit]
    by_meaning: Sequence[ChunkHit]
    lacking: Collection[str] = ()


def fuse(rankings: Rankings, k: int = FUSION_K, half_share: float = HALF_SHARE) -> tuple[ChunkHit, ...]:
    """Join two rankings by reciprocal rank fusion, each place weighed by what its ranking measured.

    By words that is the share of the query's words, so that words found by chance count little; by meaning it is the
    cosine. A chunk without a vector has a place by meaning that nobody knows: it is taken for its place by words, with
    the worth of the nearest chunk. The ranking by meaning counts by the share of the chunks found by words, and of one
    more, that have a vector. So nothing is lost against the search by words while vectors are being made.
    A chunk that is first in both rankings has the score 1, whatever was measured. Of equal scores the nearer
    meaning comes first. Scores depend on nothing but the searched bases.
    The scores of `by_meaning` are cosines; each hit keeps its own as `similarity`.
    """
    by_words, by_meaning, lacking = rankings
    words = {
        hit.chunk.id: _Place(place, hit.share_of_words / (hit.share_of_words + half_share))
        for place, hit in enumerate(by_words[:FUSION_DEPTH], start=1)
    }
    meaning = {hit.chunk.id: _Place(place, hit.score) for place, hit in enumerate(by_meaning[:FUSION_DEPTH], start=1)}
    unknown = words.keys() & lacking
    nearest = max((place.worth for place in meaning.values()), default=0.0)
    meaning |= {chunk_id: words[chunk_id]._replace(measured=nearest) for chunk_id in unknown}
    share = (len(words) - len(unknown) + 1) / (len(words) + 1)
    sums: dict[str, float] = {}
    most = 0.0
    for ranking, weight in ((words, 1.0), (meaning, share)):
        for chunk_id, place in ranking.items():
            sums[chunk_id] = sums.get(chunk_id, 0.0) + weight * place.worth * (k + 1) / (k + place.number)
        most += weight * max((place.worth for place in ranking.values()), default=0.0)
    found_by_words = {hit.chunk.id for hit in by_words}
    similarities = {hit.chunk.id: hit.score for hit in by_meaning}
    hits = {hit.chunk.id: hit for hit in (*by_meaning, *by_words) if hit.chunk.id in sums}
    fused = (
        hit.model_copy(
            update={
                "score": round(sums[chunk_id] / most, SCORE_DECIMALS),
                "similarity": similarities.get(chunk_id),
                "has_words_of_query": chunk_id in found_by_words,
            }
        )
        for chunk_id, hit in hits.items()
    )
    return tuple(sorted(fused, key=content_rank))


def reorder(hits: Sequence[ChunkHit], preferences: Sequence[float]) -> tuple[ChunkHit, ...]:
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
