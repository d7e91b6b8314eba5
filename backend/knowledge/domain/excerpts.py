"""The passages of one document that fit a question best, within a number of tokens."""

from collections import Counter
from collections.abc import Sequence

from backend.search.domain.bm25 import Scorer, Statistics, looked_up_terms, plan
from backend.search.domain.chunks import Chunk
from backend.search.domain.tokenizing import tokenize
from shared.tokens import estimate_tokens


def shown_tokens(chunk: Chunk) -> int:
    """Estimate the tokens that a chunk takes where it is shown with its headings."""
    return chunk.tokens + sum(estimate_tokens(heading) + 2 for heading in chunk.heading_path) + 2


def best_chunks(chunks: Sequence[Chunk], question: str, budget_tokens: int) -> tuple[Chunk, ...]:
    """Return the best chunks in document order; the first ones where no word of the question is found.

    Chunks that do not fit any more are passed over.
    """
    left = budget_tokens
    chosen = list[Chunk]()
    for chunk in _ranked(chunks, question):
        if (tokens := shown_tokens(chunk)) <= left:
            chosen.append(chunk)
            left -= tokens
    return tuple(sorted(chosen, key=lambda chunk: chunk.ordinal))


def _ranked(chunks: Sequence[Chunk], question: str) -> list[Chunk]:
    terms = looked_up_terms(tokenize(question))
    asked = frozenset(terms)
    counts = list[tuple[Counter[str], int]]()
    for chunk in chunks:
        tokens = tokenize(chunk.searched_text)
        counts.append((Counter(token for token in tokens if token in asked), len(tokens)))
    having = Counter(term for found, _ in counts for term in found)
    statistics = Statistics(
        chunk_count=len(chunks), token_count=sum(length for _, length in counts), chunk_counts=dict(having)
    )
    scorer = Scorer(plan(terms, statistics), statistics)
    scores = [scorer.score(found, length) for found, length in counts]
    order = sorted(range(len(chunks)), key=lambda place: (-scores[place], place))
    return [chunks[place] for place in order]
