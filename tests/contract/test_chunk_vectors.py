"""One contract for every `ChunkVectors`."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from backend.embeddings.domain import TextKind
from backend.foundation.sql.chosen import open_database
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.migrations.migrate import migrate
from backend.search.domain.filters import Comparison
from backend.search.ports.vectors import EmbeddingProgress
from backend.search.sql.vectors import SqlChunkVectors
from tests.contract.knowledge_cases import make_base
from tests.contract.knowledge_cases import put as put_document
from tests.contract.store_cases import KINDS, database_url
from tests.contract.vector_cases import LEASE, VectorStores, asked
from tests.fakes.chunk_vectors import FakeChunkVectors
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_knowledge import FakeKnowledge

put = partial(put_document, heading_path=())
OVER = timedelta(0)


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStores]:
    if request.param == "fake":
        knowledge = FakeKnowledge()
        made = VectorStores(
            knowledge, FakeChunkVectors(knowledge, FakeClock()), FakeAttachments(knowledge, FakeClock())
        )
        await fill(made)
        yield made
        return
    database = open_database(database_url(request.param, request, tmp_path))
    try:
        await migrate(database)
        store = knowledge_store(database, FakeClock())
        made = VectorStores(store, SqlChunkVectors(database), SqlAttachmentStore(database, FakeClock()))
        await fill(made)
        yield made
    finally:
        await database.close()


async def fill(stores: VectorStores) -> None:
    for base_id in ("kb_a", "kb_b"):
        await stores.store.create_base(make_base(base_id), "ann")


async def test_the_nearest_chunks_come_first_with_the_cosine_as_score(stores: VectorStores) -> None:
    embedder = FakeEmbedder(synonyms={"报销": "reimbursement"})
    await put(stores.store, "a", ["reimbursement of travel", "salmon and rivers", "holidays in spring"])
    await stores.embed(embedder)
    hits = await stores.vectors.nearest(["kb_a"], await asked(embedder, "报销 of travel"), 2)
    assert hits[0].chunk.text == "reimbursement of travel"
    assert hits[0].score == pytest.approx(1.0, abs=2e-3)
    assert len(hits) == 2
    assert hits[0].document_name == "a"


async def test_a_chunk_is_embedded_with_the_headings_above_it(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put_document(stores.store, "a", ["of travel"], heading_path=("Finance", "Reimbursement"))
    assert [each.text for each in await stores.taken(embedder, OVER)] == ["Finance\nReimbursement\nof travel"]
    await stores.embed(embedder)
    hits = await stores.vectors.nearest(["kb_a"], await asked(embedder, "Finance Reimbursement of travel"), 1)
    assert (hits[0].chunk.text, round(hits[0].score, 2)) == ("of travel", 1.0)


async def test_chunks_without_a_vector_of_a_model_are_told_apart(stores: VectorStores) -> None:
    first, other = FakeEmbedder(), FakeEmbedder(name="other")
    await put(stores.store, "a", ["one", "two"])
    await put(stores.store, "b", ["three"], base_id="kb_b")
    await stores.embed(first)
    hits = await stores.vectors.nearest(["kb_a", "kb_b"], await asked(first, "one two three"), 10)
    ids = {hit.chunk.text: hit.chunk.id for hit in hits}
    model = await other.model()
    assert await stores.vectors.find_lacking(hits, await first.model()) == frozenset()
    assert await stores.vectors.find_lacking(hits, model) == {ids["one"], ids["two"], ids["three"]}
    taken = {text.text: text for _ in range(2) for text in await stores.taken(other)}
    [vector] = await other.embed(["two"], TextKind.PASSAGE)
    await stores.vectors.put(model, [(taken["two"], vector)])
    await stores.vectors.refuse(model, [taken["one"]])
    assert await stores.vectors.find_lacking(hits, model) == {ids["one"], ids["three"]}
    assert await stores.vectors.find_lacking([], model) == frozenset()


async def test_a_text_is_taken_once_and_again_when_its_lease_is_over(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["one", "two"])
    assert len(await stores.taken(embedder, OVER)) == 2
    assert len(await stores.taken(embedder)) == 2
    assert await stores.taken(embedder) == []
    assert await stores.found(embedder, "one") == []


async def test_a_text_that_is_given_back_is_taken_again(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["one", "two"])
    texts = await stores.taken(embedder)
    await stores.vectors.give_back(texts[:1])
    assert await stores.taken(embedder) == texts[:1]


async def test_no_more_texts_are_taken_than_asked_for(stores: VectorStores) -> None:
    await put(stores.store, "a", [f"text {number}" for number in range(5)])
    embedder = FakeEmbedder()
    assert [len(await stores.taken(embedder, limit=3)) for _ in range(3)] == [3, 2, 0]


async def test_equal_texts_of_a_base_are_embedded_once(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["the same", "the same", "other"])
    await stores.embed(embedder)
    await put(stores.store, "c", ["the same", "new"])
    await stores.embed(embedder)
    assert sorted(embedder.texts) == ["new", "other", "the same"]
    progress = await stores.vectors.progress(["kb_a"], await embedder.model())
    assert progress == {"kb_a": EmbeddingProgress(5, 5)}


async def test_progress_is_told_for_each_document(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    first = await put(stores.store, "a", ["one", "two"])
    await stores.embed(embedder)
    second = await put(stores.store, "b", ["three"])
    model, ids = await embedder.model(), [first.id, second.id]
    assert (await stores.vectors.count_embedded_chunks([first.id], model)) == {first.id: 2}
    assert (await stores.vectors.count_embedded_chunks(ids, model)).get(second.id, 0) == 0
    await stores.embed(embedder)
    assert await stores.vectors.count_embedded_chunks(ids, model) == {first.id: 2, second.id: 1}
    other = model.model_copy(update={"name": "another"})
    assert not (await stores.vectors.count_embedded_chunks(ids, other)).get(first.id)


async def test_an_equal_text_of_the_base_that_another_process_has_taken_is_not_taken(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["the same"])
    await stores.taken(embedder)
    await put(stores.store, "b", ["the same"])
    assert await stores.taken(embedder) == []


@pytest.mark.parametrize("has_secret", [True, False])
@pytest.mark.parametrize("is_waiting", [True, False])
async def test_nothing_tells_whether_a_guessed_text_stands_in_a_foreign_base(
    stores: VectorStores, has_secret: bool, is_waiting: bool
) -> None:
    """Whoever uploads a guess into their own base sees the same progress and calls, embedded there or taken."""
    embedder, guess = FakeEmbedder(), "the secret of another base"
    await put(stores.store, "theirs", [guess if has_secret else "what nobody guesses"], base_id="kb_b")
    if is_waiting:
        await stores.taken(embedder)
    else:
        await stores.embed(embedder)
    asked_before = len(embedder.texts)
    await put(stores.store, "mine", [guess, "more"])
    model = await embedder.model()
    await stores.vectors.discover(model)
    found = await stores.vectors.take_unembedded(model, 64, LEASE)
    assert (sorted(text.text for text in found.texts), found.reused) == (["more", guess], 0)
    assert await stores.vectors.progress(["kb_a"], model) == {
        "kb_a": EmbeddingProgress(0, 2, waiting_chunks=2, waiting_tokens=6)
    }
    await stores.vectors.give_back(found.texts)
    await stores.embed(embedder)
    assert sorted(embedder.texts[asked_before:]) == ["more", guess]
    assert await stores.vectors.progress(["kb_a"], model) == {"kb_a": EmbeddingProgress(2, 2)}


async def test_what_stays_of_a_replaced_document_is_not_embedded_again(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first", "second", "third"])
    await stores.embed(embedder)
    await put(stores.store, "a", ["first", "changed", "third"])
    await stores.vectors.sweep(await embedder.model())
    await stores.embed(embedder)
    assert sorted(embedder.texts) == ["changed", "first", "second", "third"]
    assert sorted(await stores.found(embedder, "first")) == ["changed", "first", "third"]


async def test_chunks_of_deleted_documents_are_not_found_and_their_vectors_go(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first", "second"])
    await put(stores.store, "b", ["third"])
    await stores.embed(embedder)
    assert await stores.vectors.sweep(await embedder.model()) == 0
    await stores.store.delete_document("kb_a", "a")
    assert await stores.found(embedder, "first") == ["third"]
    assert await stores.vectors.sweep(await embedder.model()) == 2
    assert await stores.found(embedder, "first") == ["third"]


async def test_vectors_of_replaced_chunks_stay_for_texts_that_wait_and_go_without_an_embedder(
    stores: VectorStores,
) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first", "second"])
    await put(stores.store, "b", ["third"])
    await stores.embed(embedder)
    await put(stores.store, "a", ["first", "changed"])
    assert await stores.vectors.sweep(None) == 0
    await stores.store.delete_document("kb_a", "a")
    assert await stores.vectors.sweep(None) == 2, "they go while the embedder is away, where nothing waits"
    await put(stores.store, "b", ["fourth"])
    assert await stores.vectors.sweep(None, keeps_reusable=False) == 1


async def test_a_base_tells_by_which_models_it_is_embedded(stores: VectorStores) -> None:
    former, new = FakeEmbedder(name="former"), FakeEmbedder(name="new")
    await put(stores.store, "a", ["first"])
    assert list(await stores.vectors.models_of("kb_a")) == []
    for embedder in (former, new):
        await stores.embed(embedder)
    told = await stores.vectors.models_of("kb_a")
    assert {one.name for one in told} == {(await each.model()).name for each in (former, new)}
    assert list(await stores.vectors.models_of("kb_b")) == []


async def test_vectors_of_a_former_model_stay_while_the_embedder_is_away(stores: VectorStores) -> None:
    former = FakeEmbedder(name="former")
    await put(stores.store, "a", ["first"])
    await stores.embed(former)
    assert await stores.vectors.sweep(None) == 0
    assert await stores.found(former, "first") == ["first"]


async def test_a_deleted_base_leaves_no_vectors(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first", "second"])
    await stores.embed(embedder)
    await stores.store.delete_base("kb_a")
    assert await stores.vectors.sweep(None) == 2
    assert await stores.vectors.sweep(await embedder.model()) == 0


async def test_nothing_of_a_base_without_embedding_is_taken_found_or_kept(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    model = await embedder.model()
    await put(stores.store, "a", ["first"])
    await stores.embed(embedder)
    await stores.store.update_base("kb_a", {"embed": False})
    await put(stores.store, "b", ["second"])
    assert await stores.taken(embedder) == []
    assert await stores.found(embedder, "first") == []
    assert await stores.vectors.progress(["kb_a"], model) == {}
    assert await stores.vectors.count_waiting(model) == 0
    assert await stores.vectors.sweep(model) == 1
    await stores.store.update_base("kb_a", {"embed": True})
    assert await stores.found(embedder, "first") == []
    await stores.embed(embedder)
    assert sorted(await stores.found(embedder, "first")) == ["first", "second"]


async def test_a_refused_text_is_not_taken_again_and_not_found(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    model = await embedder.model()
    await put(stores.store, "a", ["bad", "good"])
    texts = await stores.taken(embedder)
    await stores.vectors.refuse(model, [text for text in texts if text.text == "bad"])
    await stores.vectors.give_back([text for text in texts if text.text == "good"])
    await stores.embed(embedder)
    assert embedder.texts == ["good"]
    assert await stores.found(embedder, "bad") == ["good"]
    assert await stores.vectors.progress(["kb_a"], model) == {"kb_a": EmbeddingProgress(1, 2)}
    assert await stores.vectors.count_waiting(model) == 0


async def test_vectors_of_two_models_are_never_compared(stores: VectorStores) -> None:
    former, new = FakeEmbedder(name="former"), FakeEmbedder(name="new", dimension=32)
    await put(stores.store, "a", ["first", "second"])
    await stores.embed(former)
    assert await stores.found(new, "first") == []
    texts = await stores.taken(new, limit=1)
    await stores.vectors.sweep(await new.model())
    assert len(await stores.found(former, "first")) == 2
    await stores.vectors.put(
        await new.model(), list(zip(texts, await new.embed([texts[0].text], TextKind.PASSAGE), strict=True))
    )
    assert await stores.found(new, "first") == [texts[0].text]
    assert await stores.vectors.count_waiting(await new.model()) == 1
    await stores.embed(new)
    assert await stores.vectors.sweep(await new.model()) == 2
    assert await stores.found(former, "first") == []
    assert len(await stores.found(new, "first")) == 2


async def test_a_vector_of_another_dimension_is_no_vector_of_the_model(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first"])
    texts = await stores.taken(embedder)
    wrong = await FakeEmbedder(dimension=3).embed(["first"], TextKind.PASSAGE)
    with pytest.raises(ValueError, match="numbers"):
        await stores.vectors.put(await embedder.model(), [(texts[0], wrong[0])])


async def test_a_foreign_base_changes_nothing(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["red apples and pears", "red plums", "green pears"])
    await stores.embed(embedder)
    query = await asked(embedder, "red pears")
    before = await stores.vectors.nearest(["kb_a"], query, 10)
    await put(stores.store, "b", [f"red pears {number}" for number in range(30)], base_id="kb_b")
    await stores.embed(embedder)
    assert await stores.vectors.nearest(["kb_a"], query, 10) == before
    assert len(before) == 3


async def test_equal_scores_are_ordered_by_content(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    for name in ("c", "a", "b"):
        await put(stores.store, name, ["the same", f"other {name}"])
    await stores.embed(embedder)
    hits = await stores.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 2)
    assert [(hit.document_name, hit.chunk.text) for hit in hits] == [("a", "the same"), ("b", "the same")]


async def test_filters_leave_documents_out(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    for name in ("a", "b", "c"):
        document = await put(stores.store, name, [f"the same {name}", "more"])
        if name == "b":
            assert await stores.attachments.set_attributes("kb_a", document.id, {"year": 2026})
    await stores.embed(embedder)
    year = Comparison(type="eq", key="year", value=2026)
    hits = await stores.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 10, year)
    assert {hit.document_name for hit in hits} == {"b"}
    assert len(hits) == 2
    none = Comparison(type="eq", key="year", value=1999)
    assert await stores.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 10, none) == ()


async def test_no_base_and_no_limit_find_nothing(stores: VectorStores) -> None:
    embedder = FakeEmbedder()
    await put(stores.store, "a", ["first"])
    await stores.embed(embedder)
    query = await asked(embedder, "first")
    assert await stores.vectors.nearest([], query, 10) == ()
    assert await stores.vectors.nearest(["kb_a"], query, 0) == ()
    assert await stores.vectors.nearest(["kb_b"], query, 10) == ()
