"""What search by meaning adds to search by words: the part of `make eval-retrieval` that needs the local embedder."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from backend.embeddings.domain import TextKind
from backend.search.domain.bm25 import show_score
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.fusion import FUSION_DEPTH, FUSION_K, HALF_SHARE, RERANKED_HITS, Rankings, fuse, reorder
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.index import Retrieval
from backend.search.ports.vectors import ChunkVectors
from tests.bench.eval_sets import CHOSEN_ON, Question, QuestionSet
from tests.bench.kept_vectors import KeptVectors

KS = (1, 5, 10, 20, 60)
HALF_SHARES = (0.1, 0.2, 0.4, 0.8, 1.6)
DEPTH = 10
WORDS, VECTORS, FUSION, RERANKED = WAYS = ("words", "vectors", "fusion", "fusion, stand-in reranker")
_TEXTS_AT_ONCE = 256
_LEASE = timedelta(minutes=10)
_TOLD_SECONDS = 30.0
_SECONDS_PER_TEXT = 0.35


class Share(NamedTuple):
    """How often the right document is first, and among the first three, for one set in one way."""

    set_name: str
    way: str
    questions: int
    hit_at_1: float
    hit_at_3: float
    mrr_at_10: float


class Searched(NamedTuple):
    """What finds chunks in one database, and the bases there by their keys."""

    retrieval: Retrieval
    vectors: ChunkVectors
    base_ids: Mapping[str, str]


class Found(NamedTuple):
    """The two rankings of a question."""

    question: Question
    by_words: tuple[ChunkHit, ...]
    by_meaning: tuple[ChunkHit, ...]
    lacking: frozenset[str] = frozenset()

    @property
    def rankings(self) -> Rankings:
        """What is fused."""
        return Rankings(self.by_words, self.by_meaning, self.lacking)


class EmbeddingTold:
    """Tells on stderr how far embedding is, now and then."""

    def __init__(self) -> None:
        self._started = self._told = time.monotonic()

    def begin(self, missing: int, bound_seconds: float) -> None:
        """Say how long it will take, before it begins."""
        if missing:
            minutes = missing * _SECONDS_PER_TEXT / 60
            bound = "" if bound_seconds == float("inf") else f", of which this run takes {bound_seconds:.0f} seconds"
            sys.stderr.write(
                f"{missing} chunks have no kept vector. Embedding them takes about {minutes:.0f} minutes "
                f"of an idle core{bound}. Vectors are kept for the next run. "
                "BALLAST_EVAL_EMBED_SECONDS bounds the time.\n"
            )

    def __call__(self, done: int, count: int) -> None:
        """Note progress."""
        now = time.monotonic()
        if done and now - self._told >= _TOLD_SECONDS:
            self._told = now
            left_minutes = (now - self._started) / done * (count - done) / 60
            sys.stderr.write(f"embedded {done} of {count}, about {left_minutes:.0f} minutes left\n")


def embed_texts(kept: KeptVectors, sets: Sequence[QuestionSet], chunks: Sequence[str], bound_seconds: float) -> None:
    """Give all questions a vector, and the chunks, in their order, as many as the time allows."""
    told = EmbeddingTold()
    kept.provider.make((one.text for asked in sets for one in asked.questions), TextKind.QUERY)
    missing = kept.provider.find_missing(chunks, TextKind.PASSAGE)
    told.begin(len(missing), bound_seconds)
    kept.provider.make(missing, TextKind.PASSAGE, time.monotonic() + bound_seconds, told)


async def store_vectors(vectors: ChunkVectors, kept: KeptVectors) -> None:
    """Store the kept vectors of all chunks; a text without one is noted as one that the model refuses."""
    if (lacking := await vectors.find_missing()) is not None:
        raise RuntimeError(lacking)
    await kept.prepare()
    model = await kept.model()
    await vectors.discover(model)
    while (taken := await vectors.take_unembedded(model, _TEXTS_AT_ONCE, _LEASE)).texts or taken.reused:
        absent = set(kept.provider.find_missing([one.text for one in taken.texts], TextKind.PASSAGE))
        known = [one for one in taken.texts if one.text not in absent]
        made = await kept.embed([one.text for one in known], TextKind.PASSAGE)
        await vectors.put(model, list(zip(known, made, strict=True)))
        await vectors.refuse(model, [one for one in taken.texts if one.text in absent])
    await vectors.upkeep()


async def found_in(
    searched: Searched, kept: KeptVectors, asked: QuestionSet, *, depth: int = FUSION_DEPTH
) -> list[Found]:
    """Search for each question of a set, by words, and by meaning to a depth."""
    base_ids = [searched.base_ids[asked.base]]
    found: list[Found] = []
    for question in asked.questions:
        embedded = await kept.vector_of(question.text)
        by_words = await searched.retrieval.search(base_ids, question.text, FUSION_DEPTH)
        by_meaning = await searched.vectors.nearest(base_ids, embedded, depth) if embedded else ()
        lacking = await searched.vectors.find_lacking(by_words, embedded.model) if embedded else frozenset[str]()
        found.append(Found(question, by_words, by_meaning, lacking))
    return found


def shares_of(name: str, found: Sequence[Found]) -> Iterator[Share]:
    """Yield the figures of a set in each way."""
    yield share(name, WORDS, found, lambda one: one.by_words)
    yield share(name, VECTORS, found, lambda one: one.by_meaning)
    yield share(name, FUSION, found, _fused)
    yield share(name, RERANKED, found, _reranked)


def grid_of(found: Sequence[Found]) -> Iterator[Share]:
    """Yield the figures of the set on which the constants were chosen, for several of each."""
    for k in KS:
        yield share(CHOSEN_ON, f"k = {k}", found, lambda one, k=k: fuse(one.rankings, k, HALF_SHARE))
    for half in HALF_SHARES:
        yield share(
            CHOSEN_ON,
            f"half share = {half}",
            found,
            lambda one, half=half: fuse(one.rankings, FUSION_K, half),
        )


def share(name: str, way: str, found: Sequence[Found], ranked: Callable[[Found], Sequence[ChunkHit]]) -> Share:
    """Return the figures of a set, ranked in one way."""
    ranks = [rank_of(one.question, ranked(one)) for one in found]
    return Share(
        name,
        way,
        len(ranks),
        sum(rank == 1 for rank in ranks) / len(ranks),
        sum(1 <= rank <= 3 for rank in ranks) / len(ranks),
        sum(1 / rank for rank in ranks if rank) / len(ranks),
    )


def rank_of(question: Question, hits: Sequence[ChunkHit]) -> int:
    """Return the place of the right document among the first hits, from 1; 0 where it is not there."""
    names = [hit.document_name for hit in hits[:DEPTH]]
    return names.index(question.document_name) + 1 if question.document_name in names else 0


def _fused(one: Found) -> tuple[ChunkHit, ...]:
    return fuse(one.rankings) if one.by_meaning else one.by_words


def _reranked(one: Found) -> tuple[ChunkHit, ...]:
    fused = _fused(one)
    return reorder(fused, [_stand_in_score(one.question.text, hit) for hit in fused[:RERANKED_HITS]])


def _stand_in_score(query: str, hit: ChunkHit) -> float:
    """Prefer a text with more of the words of the question: it stands in for a model, and is no better than that."""
    words = set(tokenize(query))
    return show_score(len(words.intersection(tokenize(hit.chunk.text)))) + hit.score


def render(database: str, shares: Sequence[Share]) -> str:
    """Render figures as a table."""
    rows = [
        f"{database:<12}{share.set_name:<44}{share.way:<28}{share.questions:>6}"
        f"{share.hit_at_1:>8.3f}{share.hit_at_3:>8.3f}{share.mrr_at_10:>8.3f}"
        for share in shares
    ]
    head = f"{'database':<12}{'set':<44}{'way':<28}{'n':>6}{'hit@1':>8}{'hit@3':>8}{'MRR@10':>8}"
    return "\n".join([head, *rows])
