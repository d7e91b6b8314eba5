"""Search while a base of two languages is being embedded: `python -m tests.bench.eval_retrieval --only coverage`.

At no share of embedded chunks may a search be worse than by words alone.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

from backend.search.domain.chunks import ChunkHit
from backend.search.domain.fusion import FUSION_DEPTH, fuse
from tests.bench.eval_bars import Judgement
from tests.bench.eval_meaning import (
    WORDS,
    Found,
    Searched,
    Share,
    found_in,
    share,
)
from tests.bench.eval_sets import QuestionSet
from tests.bench.kept_vectors import KeptVectors

BASE = "both"
EMBEDDED = (0.0, 0.01, 0.1, 0.5, 0.9, 1.0)
MOST_LOST = 0.005
_ALL_TOKENS = 10**9


async def coverage_shares(searched: Searched, kept: KeptVectors, sets: Sequence[QuestionSet]) -> list[Share]:
    """Return what is found of the base of both languages by words, and while shares of it have vectors."""
    everything = await searched.retrieval.read_all([searched.base_ids[BASE]], _ALL_TOKENS) or ()
    shares: list[Share] = []
    for asked in sets:
        if asked.base == BASE:
            found = await found_in(searched, kept, asked, depth=len(everything))
            shares.append(share(asked.name, WORDS, found, lambda one: one.by_words))
            shares += _shares_of(asked.name, found, _orders(everything))
    return shares


def judged_coverage(database: str, shares: Sequence[Share]) -> Iterator[Judgement]:
    """Yield a judgement of each set: how much is lost against words alone at the worst share."""
    for by_words in (each for each in shares if each.way == WORDS):
        worst = min((each for each in shares if each.set_name == by_words.set_name), key=lambda each: each.hit_at_1)
        bound = by_words.hit_at_1 - MOST_LOST
        is_good = worst.hit_at_1 >= bound
        yield Judgement(
            f"{database:<12}{by_words.set_name}, while embedding, at worst ({worst.way}): hit@1 {worst.hit_at_1:.3f}, "
            f"at least {bound:.3f}: {'reached' if is_good else 'NOT reached'}",
            is_good,
        )


def _orders(everything: Sequence[ChunkHit]) -> Mapping[str, Sequence[str]]:
    """Return the ids of all chunks in the orders in which they are embedded; names begin with the language."""
    by_name = [hit.chunk.id for hit in sorted(everything, key=lambda hit: hit.document_name)]
    return {
        "at random": random.Random("coverage").sample(by_name, len(by_name)),
        "English first": by_name,
        "Chinese first": by_name[::-1],
    }


def _shares_of(name: str, found: Sequence[Found], orders: Mapping[str, Sequence[str]]) -> Iterator[Share]:
    for order, ids in orders.items():
        for part in EMBEDDED:
            embedded = frozenset(ids[: round(part * len(ids))])
            some = [_with_vectors_of(one, embedded) for one in found]
            yield share(name, f"{part:.0%} embedded, {order}", some, lambda one: fuse(one.rankings))


def _with_vectors_of(one: Found, embedded: frozenset[str]) -> Found:
    near = tuple(hit for hit in one.by_meaning if hit.chunk.id in embedded)
    return one._replace(
        by_meaning=near[:FUSION_DEPTH], lacking=frozenset(hit.chunk.id for hit in one.by_words) - embedded
    )
