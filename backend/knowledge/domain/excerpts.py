"""The passages of one document that fit a question best, within a number of tokens."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from backend.search.domain.bm25 import Scorer, Statistics, find_looked_up_terms, plan
from backend.search.domain.chunks import Chunk
from backend.search.domain.tokenizing import count_terms, tokenize_indexed
from shared.tokens import estimate_tokens


def count_shown_tokens(chunk: Chunk) -> int:
    """Estimate the tokens that a chunk takes where it is shown with its headings."""
    return chunk.tokens + sum(estimate_tokens(heading) + 2 for heading in chunk.heading_path) + 2


def best_chunks(chunks: Sequence[Chunk], question: str, budget_tokens: int) -> tuple[Chunk, ...]:
    """Return the best chunks in document order; the first ones where no word of the question is found.

    Chunks that do not fit any more are passed over.
    """
    left = budget_tokens
    chosen = list[Chunk]()
    for chunk in _rank(chunks, question):
        if (tokens := count_shown_tokens(chunk)) <= left:
            chosen.append(chunk)
            left -= tokens
    return tuple(sorted(chosen, key=lambda chunk: chunk.ordinal))


def _rank(chunks: Sequence[Chunk], question: str) -> list[Chunk]:
    terms = find_looked_up_terms(question)
    counts = list[tuple[dict[str, int], int]]()
    for chunk in chunks:
        found = tokenize_indexed(chunk.join_headings)
        counts.append((count_terms(terms, Counter(chain(*found))), len(found.tokens)))
    having = Counter(term for found, _ in counts for term in found)
    statistics = Statistics(
        chunk_count=len(chunks), token_count=sum(length for _, length in counts), chunk_counts=dict(having)
    )
    scorer = Scorer(plan(terms, statistics), statistics)
    scores = [scorer.score(found, length) for found, length in counts]
    order = sorted(range(len(chunks)), key=lambda place: (-scores[place], place))
    return [chunks[place] for place in order]
