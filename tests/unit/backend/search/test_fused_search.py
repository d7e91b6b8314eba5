"""Search by words and by meaning at once, and what is left of it when a part is away."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel
from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import RERANKED_HITS
from backend.search.services.fused_search import FusedSearch
from shared.errors import Unavailable
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.exact_nearest import ExactNearest
from tests.fakes.meaning import FakeEmbedder, FakeQuestions, FakeReranker
from tests.fakes.store_knowledge import FakeKnowledge
from tests.patience import PATIENCE_SECONDS

TEXTS = ["reimbursement of hotels", "the river rises", "salmon in the river", "parking"]
SYNONYMS = {"paid back": "reimbursement", "报销": "reimbursement"}


class Searched:
    """A base of a few texts, and all that searches it."""

    def __init__(self) -> None:
        self.words = FakeKnowledge()
        self.embedder = FakeEmbedder(synonyms=SYNONYMS)
        self.nearest = ExactNearest(self.words, self.embedder)
        self.reranker = FakeReranker()
        self.reranker.is_away = True
        meaning = MeaningPorts(self.embedder, FakeQuestions(self.embedder), self.reranker)
        self.fused = FusedSearch(self.words, self.nearest, meaning)

    async def texts(self, query: str, limit: int = 10) -> list[str]:
        return [hit.chunk.text for hit in await self.fused.search(["kb_a"], query, limit)]


@pytest.fixture
async def searched() -> Searched:
    searched = Searched()
    await searched.words.create_base(make_base(), "ann")
    await put(searched.words, "a", TEXTS)
    return searched


@pytest.mark.parametrize("query", ["what will be paid back ?", "报销"])
async def test_a_text_in_other_words_is_found(searched: Searched, query: str) -> None:
    assert await searched.words.search(["kb_a"], "报销", 10) == ()
    first, *_ = await searched.fused.search(["kb_a"], query, 10)
    assert first.chunk.text == TEXTS[0]
    assert not first.has_words_of_query


async def test_what_words_and_meaning_find_is_first(searched: Searched) -> None:
    assert (await searched.texts("salmon in the river"))[0] == TEXTS[2]


async def test_without_a_vector_hits_and_scores_are_those_of_words(searched: Searched) -> None:
    searched.embedder.failure = Unavailable("the embedder is away")
    for limit in (1, 2, 200):
        by_words = await searched.words.search(["kb_a"], "the river", limit)
        assert await searched.fused.search(["kb_a"], "the river", limit) == by_words != ()


async def test_vectors_that_cannot_be_read_cost_no_search(searched: Searched) -> None:
    searched.nearest.failure = Unavailable("the database is away")
    assert await searched.fused.search(["kb_a"], "river", 9) == await searched.words.search(["kb_a"], "river", 9)


async def test_a_base_without_vectors_is_searched_by_words(searched: Searched) -> None:
    class Empty:
        async def nearest(
            self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
        ) -> tuple[ChunkHit, ...]:
            return ()

        async def find_lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
            raise AssertionError("nothing was near")

    meaning = MeaningPorts(searched.embedder, FakeQuestions(searched.embedder), NO_MEANING.reranker)
    fused = FusedSearch(searched.words, Empty(), meaning)
    assert await fused.search(["kb_a"], "river", 9) == await searched.words.search(["kb_a"], "river", 9)


async def test_the_outage_of_words_is_raised_as_it_is(searched: Searched) -> None:
    class Away(FakeKnowledge):
        async def search(
            self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
        ) -> tuple[ChunkHit, ...]:
            raise Unavailable("the database is away")

    held = searched.embedder.held = asyncio.Event()
    with pytest.raises(Unavailable):
        await FusedSearch(
            Away(), searched.nearest, MeaningPorts(None, FakeQuestions(searched.embedder), FakeReranker())
        ).search(["kb_a"], "river", 9)
    assert not held.is_set()


async def test_the_query_is_embedded_while_its_words_are_looked_up(searched: Searched) -> None:
    looked_up = asyncio.Event()

    class Watched(FakeKnowledge):
        async def search(
            self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
        ) -> tuple[ChunkHit, ...]:
            looked_up.set()
            return await searched.words.search(base_ids, query, limit, filters)

    searched.embedder.held = looked_up
    meaning = MeaningPorts(searched.embedder, FakeQuestions(searched.embedder), NO_MEANING.reranker)
    async with asyncio.timeout(PATIENCE_SECONDS):
        hits = await FusedSearch(Watched(), searched.nearest, meaning).search(["kb_a"], "报销", 9)
    assert hits[0].chunk.text == TEXTS[0]


async def test_a_reranker_reorders_and_its_absence_changes_nothing(searched: Searched) -> None:
    before = await searched.fused.search(["kb_a"], "river", 9)
    searched.reranker.is_away = False
    searched.reranker.known = {TEXTS[3]: 4.0}
    after = await searched.fused.search(["kb_a"], "river", 9)
    assert after[0].chunk.text == TEXTS[3]
    assert [hit.score for hit in after] == [hit.score for hit in before]
    assert searched.reranker.calls[-1] == ("river", tuple(hit.chunk.text for hit in before))


async def test_a_reranker_reads_no_more_than_the_first_hits(searched: Searched) -> None:
    await put(searched.words, "b", [f"river {number}" for number in range(80)])
    await searched.texts("river", 3)
    [(_, texts)] = searched.reranker.calls
    assert len(texts) == RERANKED_HITS


async def test_a_search_of_nothing_asks_nobody(searched: Searched) -> None:
    assert await searched.fused.search([], "river", 9) == await searched.fused.search(["kb_a"], "river", 0) == ()
    assert searched.embedder.calls == searched.reranker.calls == []


WORDS = [f"word{number}" for number in range(60)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("is_at_random", [True, False])
async def test_search_is_never_worse_than_by_words_while_vectors_come(
    searched: Searched, share: float, is_at_random: bool
) -> None:
    dice = random.Random(7)
    said = [dice.sample(WORDS, 8) for _ in range(40)]
    texts = [" ".join(words) for words in said]
    await put(searched.words, "b", texts)
    asked = [" ".join([*dice.sample(words, 3), *dice.sample(WORDS, 2)]) for words in said]
    order = dice.sample(texts, len(texts)) if is_at_random else texts
    searched.nearest.unembedded = frozenset([*TEXTS, *order[round(share * len(texts)) :]])
    by_words = [(await searched.words.search(["kb_a"], question, 1))[0].chunk.text for question in asked]
    by_both = [(await searched.texts(question, 1))[0] for question in asked]
    right_by_words, right_by_both = (sum(map(str.__eq__, found, texts)) for found in (by_words, by_both))
    assert right_by_both >= right_by_words > 0
