"""One contract for every `Retrieval`: exact where the fake is, equal to it in order and score."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from backend.search.domain.chunks import ChunkHit
from tests.contract.knowledge_cases import Knowledge, fake_knowledge, make_base, put, sql_knowledge


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def knowledge(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Knowledge]:
    if request.param == "fake":
        made = fake_knowledge()
        await _fill(made)
        yield made
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    url = sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with sql_knowledge(url) as made:
        await _fill(made)
        yield made


async def _fill(knowledge: Knowledge) -> None:
    for base_id in ("kb_a", "kb_b"):
        await knowledge.store.create_base(make_base(base_id), "ann")


async def _found(knowledge: Knowledge, query: str, base_ids: Sequence[str] = ("kb_a",), limit: int = 10) -> list[str]:
    return [hit.chunk.text for hit in await knowledge.retrieval.search(base_ids, query, limit)]


async def test_the_chunk_with_more_of_the_rarer_words_comes_first(knowledge: Knowledge) -> None:
    texts = ["the river rises in spring", "the river in spring and its salmon", "the forest", "nothing of the kind"]
    await put(knowledge.store, "a", texts)
    assert (await _found(knowledge, "salmon in the river"))[:2] == [texts[1], texts[0]]


async def test_chinese_and_mixed_text_is_found(knowledge: Knowledge) -> None:
    texts = ["报销差旅费需要发票", "年假每年十五天", "使用 Kubernetes 部署服务"]
    await put(knowledge.store, "a", texts)
    assert (await _found(knowledge, "差旅费怎么报销?"))[0] == texts[0]
    assert (await _found(knowledge, "年假"))[0] == texts[1]
    assert (await _found(knowledge, "kubernetes部署"))[0] == texts[2]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resume pret", "Le résumé est prêt."),
        ("résumé prêt", "The resume is pret."),
        ("Mueller", "Frau Müller unterschreibt."),
        ("Müller", "Frau Mueller unterschreibt."),
        ("Muller", "Frau Müller unterschreibt."),
        ("软件", "這個軟體需要授權"),
        ("軟體", "这个软件需要授权"),
        ("软件许可", "軟件許可"),
        ("NOR0707-60", "Order NOR070760 in boxes."),
        ("NOR070760", "Order NOR0707-60 in boxes."),
        ("NOR0707-60", "Order NOR 0707 60 in boxes."),
        ("NOR 0707 60", "Order NOR-0707/60 in boxes."),
        ("12500", "It costs 12,500 a year."),
        ("12.500", "It costs 12\u202f500 a year."),
    ],
)
async def test_words_are_found_in_other_spellings(knowledge: Knowledge, query: str, text: str) -> None:
    await put(knowledge.store, "a", ["The river is cold.", text, "河水很冷", "Three boxes of 60 or 70."])
    (first, *_) = await knowledge.retrieval.search(["kb_a"], query, 10)
    assert first.chunk.text == text


async def test_a_word_in_two_spellings_counts_once(knowledge: Knowledge) -> None:
    """A question in accents has the whole of its words where they are written without, and in a chunk of both."""
    await put(knowledge.store, "a", ["Müller", "Mueller", "Muller", "Müller Mueller"])
    hits = await knowledge.retrieval.search(["kb_a"], "Müller", 10)
    assert {hit.chunk.text for hit in hits} == {"Müller", "Mueller", "Muller", "Müller Mueller"}
    assert len({hit.share_of_words for hit in hits if hit.chunk.text != "Müller Mueller"}) == 1


async def test_headings_are_searched_too(knowledge: Knowledge) -> None:
    await put(knowledge.store, "a", ["nothing here"])
    assert await _found(knowledge, "guide") == ["nothing here"]


async def test_a_hit_carries_where_it_is_from(knowledge: Knowledge) -> None:
    document = await put(knowledge.store, "a/b.md", ["one", "two words"])
    (hit,) = await knowledge.retrieval.search(["kb_a"], "two", 5)
    assert (hit.knowledge_base_id, hit.document_id, hit.document_name) == ("kb_a", document.id, "a/b.md")
    assert (hit.chunk.ordinal, hit.chunk.heading_path) == (1, ("Guide", "河"))
    assert hit.score > 0


async def test_another_base_changes_neither_score_nor_order(knowledge: Knowledge) -> None:
    await put(knowledge.store, "a", ["red apples and pears", "red plums", "green pears"])
    before = await knowledge.retrieval.search(["kb_a"], "red pears", 10)
    await put(knowledge.store, "b", ["red " * 50, *(f"pears {number}" for number in range(20))], base_id="kb_b")
    assert await knowledge.retrieval.search(["kb_a"], "red pears", 10) == before
    assert {hit.knowledge_base_id for hit in await knowledge.retrieval.search(["kb_a", "kb_b"], "red", 50)} == {
        "kb_a",
        "kb_b",
    }


async def test_words_weigh_by_the_union_of_the_searched_bases(knowledge: Knowledge) -> None:
    await put(knowledge.store, "a", ["alpha beta", "alpha gamma", "alpha delta"])
    await put(knowledge.store, "b", ["beta one", "beta two", "beta three", "alpha four"], base_id="kb_b")
    hits = await knowledge.retrieval.search(["kb_b", "kb_a"], "alpha beta", 10)
    assert hits[0].chunk.text == "alpha beta"
    equal = {hit.score for hit in hits if hit.chunk.text in ("alpha four", "beta one", "alpha gamma")}
    assert len(equal) == 1


async def test_equal_scores_are_ordered_by_text_whatever_came_first(knowledge: Knowledge) -> None:
    texts = [f"{letter} river" for letter in "mbzakq"]
    for number, text in enumerate(texts):
        await put(knowledge.store, f"n{number}", [text])
    assert await _found(knowledge, "river") == sorted(texts)
    assert await _found(knowledge, "river", limit=3) == sorted(texts)[:3]


async def test_of_many_equals_the_first_by_text_are_found(knowledge: Knowledge) -> None:
    texts = [f"river {number:04}" for number in range(300)]
    random.Random(1).shuffle(texts)
    await put(knowledge.store, "a", texts[:150])
    await put(knowledge.store, "b", texts[150:])
    await put(knowledge.store, "c", ["river river delta"])
    assert await _found(knowledge, "river", limit=4) == ["river river delta", "river 0000", "river 0001", "river 0002"]


async def test_what_is_replaced_or_deleted_is_found_no_more(knowledge: Knowledge) -> None:
    await put(knowledge.store, "a", ["old salmon", "old trout"])
    await put(knowledge.store, "b", ["salmon again"])
    fresh = await knowledge.retrieval.search(["kb_a"], "again", 5)
    await put(knowledge.store, "c", ["salmon salmon", "trout", "again"])
    await knowledge.store.delete_document("kb_a", "c")
    assert await knowledge.retrieval.search(["kb_a"], "again", 5) == fresh
    await put(knowledge.store, "a", ["new trout"], document_id="doc_new")
    assert await _found(knowledge, "salmon trout") == ["new trout", "salmon again"]
    assert await _found(knowledge, "old") == []
    await knowledge.store.delete_base("kb_a")
    assert await _found(knowledge, "salmon") == []


async def test_any_text_is_a_query(knowledge: Knowledge, subtests: pytest.Subtests) -> None:
    await put(knowledge.store, "a", ["a river"])
    for query in (
        "",
        "   ",
        '"',
        "'; DROP TABLE chunk; --",
        'a" OR "b* NEAR(c) col:d -e ^f + (',
        "😀🎉",
        "%_\\",
        "NOT",
        "AND OR",
        "\u202e\u200b\ufeff",
        "\x00\x01",
        "x" * 30_000,
        "é̈" * 200,
        " ".join(f"word{number}" for number in range(10_000)),
        "河" * 10_000,
    ):
        with subtests.test(query[:99]):
            assert isinstance(await knowledge.retrieval.search(["kb_a"], query, 3), tuple)


async def test_nothing_named_nothing_there_nothing_found(knowledge: Knowledge) -> None:
    assert await knowledge.retrieval.search([], "river", 3) == ()
    assert await knowledge.retrieval.search(["kb_a", "kb_unknown"], "river", 3) == ()
    await put(knowledge.store, "a", ["a river"])
    assert await knowledge.retrieval.search(["kb_a"], "mountain", 3) == ()
    assert await knowledge.retrieval.search(["kb_a"], "river", 0) == ()
    assert len(await knowledge.retrieval.search(["kb_a", "kb_a"], "river", 3)) == 1


async def test_documents_may_come_and_go_while_one_searches(knowledge: Knowledge) -> None:
    base_ids = ("kb_a", "kb_b")
    for base_id in base_ids:
        await put(knowledge.store, "kept", ["alpha beta"] * 10, base_id=base_id)
    is_over = asyncio.Event()

    async def come_and_go(base_id: str) -> None:
        for _ in range(10):
            await put(knowledge.store, "gone", [f"alpha {base_id} {number}" for number in range(30)], base_id=base_id)
            await knowledge.store.delete_document(base_id, "gone")

    async def search() -> None:
        while not is_over.is_set():
            assert len(await knowledge.retrieval.search(base_ids, "alpha beta kb_a kb_b 7", 10)) == 10
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(search())
        async with asyncio.TaskGroup() as writing:
            for base_id in base_ids:
                writing.create_task(come_and_go(base_id))
        is_over.set()


async def test_small_bases_come_whole_in_document_order(knowledge: Knowledge) -> None:
    await put(knowledge.store, "b", ["b0", "b1"])
    await put(knowledge.store, "a", ["a0"])
    await put(knowledge.store, "a", ["z0"], base_id="kb_b")
    whole = await knowledge.retrieval.read_all(["kb_b", "kb_a"], 40)
    assert whole is not None
    assert [hit.chunk.text for hit in whole] == ["a0", "b0", "b1", "z0"]
    assert await knowledge.retrieval.read_all(["kb_b", "kb_a"], 39) is None
    assert await knowledge.retrieval.read_all([], 0) == ()


async def test_the_first_chunks_of_documents_come_in_the_order_asked_for(knowledge: Knowledge) -> None:
    first = await put(knowledge.store, "a", ["one", "two", "three"])
    second = await put(knowledge.store, "b", ["four"], base_id="kb_b")
    found = await knowledge.retrieval.beginnings([second.id, first.id, "doc_none"], 2, 9)
    assert [(hit.document_id, hit.chunk.text) for hit in found] == [
        (second.id, "four"),
        (first.id, "one"),
        (first.id, "two"),
    ]
    assert await knowledge.retrieval.beginnings([second.id, first.id], 2, 2) == found[:2]
    assert await knowledge.retrieval.beginnings([], 2, 9) == ()
    many = [(await put(knowledge.store, f"c{number}", [f"c{number}"])).id for number in range(9)]
    assert [hit.document_id for hit in await knowledge.retrieval.beginnings(many, 1, 8)] == many[:8]


async def test_order_and_scores_are_those_of_the_exact_retrieval(knowledge: Knowledge) -> None:
    exact = fake_knowledge()
    await _fill(exact)
    generator = random.Random(7)
    words = [*(f"w{number}" for number in range(60)), "知识库", "测试", "知", "Ünïcode"]
    weights = [1 / (place + 1) for place in range(len(words))]
    for number in range(60):
        base_id, name = generator.choice(["kb_a", "kb_b"]), f"n{generator.randrange(25)}"
        texts = [
            " ".join(generator.choices(words, weights, k=generator.randrange(1, 80)))
            for _ in range(generator.randrange(5))
        ]
        for target in (exact, knowledge):
            await put(target.store, name, texts, base_id=base_id, document_id=f"doc_{number}")
    for query in ("w0", "w1 w2 w40", "w3 w3 知识 测试库", "ünïcode w55", " ".join(words)):
        for base_ids in (["kb_a"], ["kb_b"], ["kb_b", "kb_a"]):
            expected = await exact.retrieval.search(base_ids, query, 8)
            _assert_same(await knowledge.retrieval.search(base_ids, query, 8), expected)


def _assert_same(hits: Sequence[ChunkHit], expected: Sequence[ChunkHit]) -> None:
    assert [hit.chunk for hit in hits] == [hit.chunk for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)


async def test_hits_depend_neither_on_the_order_of_documents_nor_on_that_of_bases(knowledge: Knowledge) -> None:
    named = {f"n{number}": [f"river {word}", f"{word} delta", "river"] for number, word in enumerate("mbzakqbm")}
    found: list[list[tuple[str, str, float]]] = []
    for seed in range(4):
        rng = random.Random(seed)
        for name in rng.sample(sorted(named), len(named)):
            for base_id in rng.sample(("kb_a", "kb_b"), 2):
                await knowledge.store.delete_document(base_id, name)
                await put(knowledge.store, name, named[name], base_id=base_id, document_id=f"{base_id}_{name}_{seed}")
        for limit in (3, 5, 40):
            hits = await knowledge.retrieval.search(rng.sample(("kb_a", "kb_b"), 2), "river delta b", limit)
            found.append([(hit.chunk.text, hit.knowledge_base_id, hit.score) for hit in hits])
    whole = found[2]
    assert found[:3] == [whole[:3], whole[:5], whole]
    assert [found[place : place + 3] for place in (3, 6, 9)] == [found[:3]] * 3
