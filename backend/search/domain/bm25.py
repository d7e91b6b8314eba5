"""BM25, the ranking of every search index, over the statistics of the searched bases and of no other."""

from collections.abc import Iterable, Mapping
from itertools import islice
from math import fsum, log

from backend.search.domain.tokenizing import query_terms
from shared.models.values import Value

K1 = 2.0
B = 0.4
"""Saturation and length normalisation; the best of a grid on the Chinese and English evaluation corpora."""

MAX_QUERY_CHARACTERS = 20_000
"""Text beyond this is ignored; far fewer words are ranked."""

MAX_LOOKED_UP_TERMS = 256
MAX_RANKED_TERMS = 48
MIN_LEADING_POSTINGS = 500
"""Bounds on the work of one search: further words hardly change the ranking and take most of the time."""

SCORE_DECIMALS = 9
"""Scores are rounded to these decimals, because sums in another order differ in the last bits."""


class Statistics(Value):
    """What is counted over all searched bases together; tokens are index tokens."""

    chunk_count: int
    token_count: int
    chunk_counts: Mapping[str, int]

    def idf(self, term: str) -> float:
        """Weigh a word by its rarity; always above 0 (Lucene's form of the Robertson-Spärck Jones weight)."""
        having = self.chunk_counts.get(term, 0)
        return log(1 + (self.chunk_count - having + 0.5) / (having + 0.5))

    @property
    def mean_length(self) -> float:
        """Index tokens of the average chunk."""
        return self.token_count / self.chunk_count if self.chunk_count else 1.0


class Query(Value):
    """The words of a query that some searched chunk has.

    A chunk is found when it has a leading word; its score counts all words. `terms` are sorted, so that sums
    are the same wherever they are made.
    """

    terms: tuple[str, ...]
    leading: tuple[str, ...]


def find_looked_up_terms(query: str) -> dict[str, tuple[str, ...]]:
    """Return the words of a query whose frequencies are worth asking for, in its order, each with its forms."""
    return dict(islice(query_terms(query[:MAX_QUERY_CHARACTERS]).items(), MAX_LOOKED_UP_TERMS))


def plan(terms: Iterable[str], statistics: Statistics) -> Query:
    """Choose the words that count and those that lead.

    The rarest words lead, as many as are needed to reach some hundred chunks: very frequent words
    find hardly a relevant chunk that rarer ones miss, but reading their postings takes most of a search's time.
    """
    known = [term for term in terms if statistics.chunk_counts.get(term, 0) > 0]
    rarest_first = sorted(known, key=lambda term: (statistics.chunk_counts[term], term))[:MAX_RANKED_TERMS]
    leading: list[str] = []
    postings = 0
    for term in rarest_first:
        if postings >= MIN_LEADING_POSTINGS:
            break
        leading.append(term)
        postings += statistics.chunk_counts[term]
    return Query(terms=tuple(sorted(rarest_first)), leading=tuple(sorted(leading)))


def greatest_score(terms: Iterable[str], statistics: Statistics) -> float:
    """Return what no chunk's score for these words exceeds: words that no chunk has count, as the rarest."""
    weights = sorted((statistics.idf(term) * (K1 + 1) for term in terms), reverse=True)
    return fsum(weights[:MAX_RANKED_TERMS])


class Scorer:
    """Scores chunks for one query."""

    def __init__(self, query: Query, statistics: Statistics) -> None:
        self._weights = [(term, statistics.idf(term) * (K1 + 1)) for term in query.terms]
        self._norm = length_norm(statistics.mean_length)

    def score(self, counts: Mapping[str, int], length: int) -> float:
        """Score a chunk of `length` index tokens from how often it has each word."""
        total = 0.0
        norm = self._norm[0] + self._norm[1] * length
        for term, weight in self._weights:
            if count := counts.get(term, 0):
                total += weight * (count / (count + norm))
        return round(total, SCORE_DECIMALS)


def show_score(score: float) -> float:
    """Bring a score between 0 and 1, where callers expect it; the order stays."""
    return round(score / (1 + score), SCORE_DECIMALS)


def length_norm(mean_length: float) -> tuple[float, float]:
    """Return a and b of `a + b * length`, the summand of BM25's denominator that grows with a chunk's length."""
    return K1 * (1 - B), K1 * B / mean_length
