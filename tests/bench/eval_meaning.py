"""What search by meaning adds to search by words: the part of `make eval-retrieval` that needs the local embedder."""

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from backend.knowledge.domain.bm25 import shown_score
from backend.knowledge.domain.fusion import FUSION_DEPTH, RERANKED_HITS, fuse, reordered, weight_of_words
from backend.knowledge.domain.knowledge import ChunkHit
from backend.knowledge.domain.tokenizing import tokenize
from backend.knowledge.ports.knowledge import Retrieval
from backend.meaning.domain import TextKind
from tests.bench.kept_vectors import KeptVectors

TRANSLATED = Path(__file__).with_name("translated_questions.jsonl")
EMBED_SECONDS = float(os.environ.get("BALLAST_EVAL_EMBED_SECONDS", "inf"))
"""How long a run may embed; chunks without a vector are found by their words alone."""

SAMPLED_QUESTIONS = 400
KS = (1, 5, 10, 20, 60)
DEPTH = 10
WAYS = ("words", "vectors", "fusion", "fusion, stand-in reranker")
CHOSEN_ON, HELD_OUT = "Chinese, for the choice of k", "Chinese, held out"
ENGLISH, TO_ENGLISH, TO_CHINESE = "English", "Chinese question, English page", "English question, Chinese passage"
_KINDS = {"en-en": ENGLISH, "zh-en": TO_ENGLISH, "en-zh": TO_CHINESE}
_FLOAT = np.float32
_ALL_TOKENS = 10**9


class AskedQuestion(NamedTuple):
    """A question, the document that answers it, and the set to which it belongs."""

    text: str
    document_name: str
    set_name: str


class Share(NamedTuple):
    """How often the right document is first, and among the first three, for one set in one way."""

    set_name: str
    way: str
    questions: int
    hit_at_1: float
    hit_at_3: float
    mrr_at_10: float


def asked_questions(sample: Sequence[tuple[str, str]]) -> list[AskedQuestion]:
    """Return a sample of questions and their documents, half of it held out, and the translated questions."""
    dice = random.Random("eval-meaning")
    some = dice.sample(list(sample), min(SAMPLED_QUESTIONS, len(sample)))
    chinese = [AskedQuestion(text, name, (CHOSEN_ON, HELD_OUT)[place % 2]) for place, (text, name) in enumerate(some)]
    lines: list[dict[str, Any]] = [orjson.loads(line) for line in TRANSLATED.read_bytes().splitlines()]
    return chinese + [AskedQuestion(line["question"], line["document"], _KINDS[line["kind"]]) for line in lines]


class Rankings:
    """The rankings by words and by meaning of each question over one database."""

    def __init__(self, retrieval: Retrieval, base_id: str, kept: KeptVectors) -> None:
        self._retrieval = retrieval
        self._base_id = base_id
        self._kept = kept
        self.hits: list[ChunkHit] = []
        self._rows = np.zeros((0, 0), dtype=_FLOAT)
        self.found: list[tuple[AskedQuestion, tuple[ChunkHit, ...], tuple[ChunkHit, ...]]] = []

    async def read(self, questions: Sequence[AskedQuestion]) -> None:
        """Embed what has no vector, those chunks first that answer questions, and rank for all questions."""
        everything = await self._retrieval.everything([self._base_id], _ALL_TOKENS) or ()
        answering = {question.document_name for question in questions}
        dice = random.Random("distractors")
        wanted = sorted(everything, key=lambda hit: (hit.document_name not in answering, dice.random()))
        self._kept.make((question.text for question in questions), TextKind.QUERY)
        self._kept.make((hit.chunk.text for hit in wanted), TextKind.PASSAGE, time.monotonic() + EMBED_SECONDS)
        pairs = [(hit, self._kept.find(hit.chunk.text, TextKind.PASSAGE)) for hit in everything]
        known = [(hit, vector) for hit, vector in pairs if vector is not None]
        self.hits = [hit for hit, _ in known]
        self._rows = np.frombuffer(b"".join(vector for _, vector in known), dtype=_FLOAT).reshape(len(known), -1)
        for question in questions:
            by_words = await self._retrieval.search([self._base_id], question.text, FUSION_DEPTH)
            self.found.append((question, by_words, await self._nearest(question.text)))

    async def _nearest(self, text: str) -> tuple[ChunkHit, ...]:
        [vector] = await self._kept.embed([text], TextKind.QUERY)
        cosines = self._rows @ np.frombuffer(vector, dtype=_FLOAT)
        best: list[int] = np.argsort(-cosines, kind="stable")[:FUSION_DEPTH].tolist()
        return tuple(self.hits[place].model_copy(update={"score": float(cosines[place])}) for place in best)

    def shares(self) -> Iterator[Share]:
        """Yield the figures of each set in each way."""
        for set_name in dict.fromkeys(question.set_name for question, _, _ in self.found):
            of_set = [found for found in self.found if found[0].set_name == set_name]
            rankings = [_in_all_ways(*found) for found in of_set]
            for way in WAYS:
                yield _share(
                    set_name, way, [rank_of(found[0], by[way]) for found, by in zip(of_set, rankings, strict=True)]
                )

    def grid(self) -> Iterator[Share]:
        """Yield the figures of the set on which k is chosen, for several k."""
        of_set = [found for found in self.found if found[0].set_name == CHOSEN_ON]
        for k in KS:
            ranks = [
                rank_of(question, fuse(words, meaning, k, weight_of_words(question.text, meaning)))
                for question, words, meaning in of_set
            ]
            yield _share(CHOSEN_ON, f"fusion, k = {k}", ranks)


def rank_of(question: AskedQuestion, hits: Sequence[ChunkHit]) -> int:
    """Return the place of the right document among the first hits, from 1; 0 where it is not there."""
    names = [hit.document_name for hit in hits[:DEPTH]]
    return names.index(question.document_name) + 1 if question.document_name in names else 0


def _in_all_ways(
    question: AskedQuestion, by_words: tuple[ChunkHit, ...], by_meaning: tuple[ChunkHit, ...]
) -> Mapping[str, tuple[ChunkHit, ...]]:
    fused = fuse(by_words, by_meaning, words=weight_of_words(question.text, by_meaning))
    preferences = [_stand_in_score(question.text, hit) for hit in fused[:RERANKED_HITS]]
    return dict(zip(WAYS, (by_words, by_meaning, fused, reordered(fused, preferences)), strict=True))


def _stand_in_score(query: str, hit: ChunkHit) -> float:
    """Prefer a text with more of the words of the question: it stands in for a model, and is no better than that."""
    words = set(tokenize(query))
    return shown_score(len(words.intersection(tokenize(hit.chunk.text)))) + hit.score


def _share(set_name: str, way: str, ranks: Sequence[int]) -> Share:
    return Share(
        set_name,
        way,
        len(ranks),
        sum(rank == 1 for rank in ranks) / len(ranks),
        sum(1 <= rank <= 3 for rank in ranks) / len(ranks),
        sum(1 / rank for rank in ranks if rank) / len(ranks),
    )


def render(database: str, shares: Sequence[Share]) -> str:
    """Render figures as a table."""
    rows = [
        f"{database:<12}{share.set_name:<36}{share.way:<28}{share.questions:>6}"
        f"{share.hit_at_1:>8.3f}{share.hit_at_3:>8.3f}{share.mrr_at_10:>8.3f}"
        for share in shares
    ]
    head = f"{'database':<12}{'set':<36}{'way':<28}{'n':>6}{'hit@1':>8}{'hit@3':>8}{'MRR@10':>8}"
    return "\n".join([head, *rows])
