"""One contract for every `ChunkVectors`."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from backend.embeddings.domain import TextKind
from backend.foundation.sql.chosen import open_database
from backend.knowledge.ports.vectors import EmbeddingProgress
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.sql.vectors import SqlChunkVectors
from backend.migrations.migrate import migrate
from backend.search.domain.filters import Comparison
from tests.contract.knowledge_cases import make_base
from tests.contract.knowledge_cases import put as put_document
from tests.contract.store_cases import KINDS, database_url
from tests.contract.vector_cases import LEASE, Room, asked
from tests.fakes.chunk_vectors import FakeChunkVectors
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_knowledge import FakeKnowledge

put = partial(put_document, heading_path=())
OVER = timedelta(0)


@pytest.fixture(params=KINDS)
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    if request.param == "fake":
        knowledge = FakeKnowledge()
        made = Room(knowledge, FakeChunkVectors(knowledge, FakeClock()), FakeAttachments(knowledge, FakeClock()))
        await fill(made)
        yield made
        return
    database = open_database(database_url(request.param, request, tmp_path))
    try:
        await migrate(database)
        store = SqlKnowledgeStore(database, FakeClock())
        made = Room(store, SqlChunkVectors(database), SqlAttachmentStore(database, FakeClock()))
        await fill(made)
        yield made
    finally:
        await database.close()


async def fill(room: Room) -> None:
    for base_id in ("kb_a", "kb_b"):
        await room.store.create_base(make_base(base_id), "ann")


async def test_the_nearest_chunks_come_first_with_the_cosine_as_score(room: Room) -> None:
    embedder = FakeEmbedder(synonyms={"报销": "reimbursement"})
    await put(room.store, "a", ["reimbursement of travel", "salmon and rivers", "holidays in spring"])
    await room.embed(embedder)
    hits = await room.vectors.nearest(["kb_a"], await asked(embedder, "报销 of travel"), 2)
    assert hits[0].chunk.text == "reimbursement of travel"
    assert hits[0].score == pytest.approx(1.0, abs=2e-3)
    assert len(hits) == 2
    assert hits[0].document_name == "a"


async def test_a_chunk_is_embedded_with_the_headings_above_it(room: Room) -> None:
    embedder = FakeEmbedder()
    await put_document(room.store, "a", ["of travel"], heading_path=("Finance", "Reimbursement"))
    assert [each.text for each in await room.taken(embedder, OVER)] == ["Finance\nReimbursement\nof travel"]
    await room.embed(embedder)
    hits = await room.vectors.nearest(["kb_a"], await asked(embedder, "Finance Reimbursement of travel"), 1)
    assert (hits[0].chunk.text, round(hits[0].score, 2)) == ("of travel", 1.0)


async def test_chunks_without_a_vector_of_a_model_are_told_apart(room: Room) -> None:
    first, other = FakeEmbedder(), FakeEmbedder(name="other")
    await put(room.store, "a", ["one", "two"])
    await put(room.store, "b", ["three"], base_id="kb_b")
    await room.embed(first)
    hits = await room.vectors.nearest(["kb_a", "kb_b"], await asked(first, "one two three"), 10)
    ids = {hit.chunk.text: hit.chunk.id for hit in hits}
    model = await other.model()
    assert await room.vectors.lacking(hits, await first.model()) == frozenset()
    assert await room.vectors.lacking(hits, model) == {ids["one"], ids["two"], ids["three"]}
    taken = {text.text: text for _ in range(2) for text in await room.taken(other)}
    [vector] = await other.embed(["two"], TextKind.PASSAGE)
    await room.vectors.put(model, [(taken["two"], vector)])
    await room.vectors.refuse(model, [taken["one"]])
    assert await room.vectors.lacking(hits, model) == {ids["one"], ids["three"]}
    assert await room.vectors.lacking([], model) == frozenset()


async def test_a_text_is_taken_once_and_again_when_its_lease_is_over(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["one", "two"])
    assert len(await room.taken(embedder, OVER)) == 2
    assert len(await room.taken(embedder)) == 2
    assert await room.taken(embedder) == []
    assert await room.found(embedder, "one") == []


async def test_a_text_that_is_given_back_is_taken_again(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["one", "two"])
    texts = await room.taken(embedder)
    await room.vectors.give_back(texts[:1])
    assert await room.taken(embedder) == texts[:1]


async def test_no_more_texts_are_taken_than_asked_for(room: Room) -> None:
    await put(room.store, "a", [f"text {number}" for number in range(5)])
    embedder = FakeEmbedder()
    assert [len(await room.taken(embedder, limit=3)) for _ in range(3)] == [3, 2, 0]


async def test_equal_texts_of_a_base_are_embedded_once(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["the same", "the same", "other"])
    await room.embed(embedder)
    await put(room.store, "c", ["the same", "new"])
    await room.embed(embedder)
    assert sorted(embedder.texts) == ["new", "other", "the same"]
    progress = await room.vectors.progress(["kb_a"], await embedder.model())
    assert progress == {"kb_a": EmbeddingProgress(5, 5)}


async def test_progress_is_told_for_each_document(room: Room) -> None:
    embedder = FakeEmbedder()
    first = await put(room.store, "a", ["one", "two"])
    await room.embed(embedder)
    second = await put(room.store, "b", ["three"])
    model, ids = await embedder.model(), [first.id, second.id]
    assert (await room.vectors.embedded_chunks([first.id], model)) == {first.id: 2}
    assert (await room.vectors.embedded_chunks(ids, model)).get(second.id, 0) == 0
    await room.embed(embedder)
    assert await room.vectors.embedded_chunks(ids, model) == {first.id: 2, second.id: 1}
    other = model.model_copy(update={"name": "another"})
    assert not (await room.vectors.embedded_chunks(ids, other)).get(first.id)


async def test_an_equal_text_of_the_base_that_another_process_has_taken_is_not_taken(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["the same"])
    await room.taken(embedder)
    await put(room.store, "b", ["the same"])
    assert await room.taken(embedder) == []


@pytest.mark.parametrize("has_secret", [True, False])
@pytest.mark.parametrize("is_waiting", [True, False])
async def test_nothing_tells_whether_a_guessed_text_stands_in_a_foreign_base(
    room: Room, has_secret: bool, is_waiting: bool
) -> None:
    """Whoever uploads a guess into their own base sees the same progress and calls, embedded there or taken."""
    embedder, guess = FakeEmbedder(), "the secret of another base"
    await put(room.store, "theirs", [guess if has_secret else "what nobody guesses"], base_id="kb_b")
    if is_waiting:
        await room.taken(embedder)
    else:
        await room.embed(embedder)
    asked_before = len(embedder.texts)
    await put(room.store, "mine", [guess, "more"])
    model = await embedder.model()
    await room.vectors.discover(model)
    found = await room.vectors.take_unembedded(model, 64, LEASE)
    assert (sorted(text.text for text in found.texts), found.reused) == (["more", guess], 0)
    assert await room.vectors.progress(["kb_a"], model) == {"kb_a": EmbeddingProgress(0, 2, waiting_chunks=2)}
    await room.vectors.give_back(found.texts)
    await room.embed(embedder)
    assert sorted(embedder.texts[asked_before:]) == ["more", guess]
    assert await room.vectors.progress(["kb_a"], model) == {"kb_a": EmbeddingProgress(2, 2)}


async def test_what_stays_of_a_replaced_document_is_not_embedded_again(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first", "second", "third"])
    await room.embed(embedder)
    await put(room.store, "a", ["first", "changed", "third"])
    await room.vectors.sweep(await embedder.model())
    await room.embed(embedder)
    assert sorted(embedder.texts) == ["changed", "first", "second", "third"]
    assert sorted(await room.found(embedder, "first")) == ["changed", "first", "third"]


async def test_chunks_of_deleted_documents_are_not_found_and_their_vectors_go(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first", "second"])
    await put(room.store, "b", ["third"])
    await room.embed(embedder)
    assert await room.vectors.sweep(await embedder.model()) == 0
    await room.store.delete_document("kb_a", "a")
    assert await room.found(embedder, "first") == ["third"]
    assert await room.vectors.sweep(await embedder.model()) == 2
    assert await room.found(embedder, "first") == ["third"]


async def test_vectors_of_replaced_chunks_stay_for_texts_that_wait_and_go_without_an_embedder(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first", "second"])
    await put(room.store, "b", ["third"])
    await room.embed(embedder)
    await put(room.store, "a", ["first", "changed"])
    assert await room.vectors.sweep(None) == 0
    await room.store.delete_document("kb_a", "a")
    assert await room.vectors.sweep(None) == 2, "they go while the embedder is away, where nothing waits"
    await put(room.store, "b", ["fourth"])
    assert await room.vectors.sweep(None, keeps_reusable=False) == 1


async def test_vectors_of_a_former_model_stay_while_the_embedder_is_away(room: Room) -> None:
    former = FakeEmbedder(name="former")
    await put(room.store, "a", ["first"])
    await room.embed(former)
    assert await room.vectors.sweep(None) == 0
    assert await room.found(former, "first") == ["first"]


async def test_a_deleted_base_leaves_no_vectors(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first", "second"])
    await room.embed(embedder)
    await room.store.delete_base("kb_a")
    assert await room.vectors.sweep(None) == 2
    assert await room.vectors.sweep(await embedder.model()) == 0


async def test_nothing_of_a_base_without_embedding_is_taken_found_or_kept(room: Room) -> None:
    embedder = FakeEmbedder()
    model = await embedder.model()
    await put(room.store, "a", ["first"])
    await room.embed(embedder)
    await room.store.update_base(make_base().model_copy(update={"embed": False}))
    await put(room.store, "b", ["second"])
    assert await room.taken(embedder) == []
    assert await room.found(embedder, "first") == []
    assert await room.vectors.progress(["kb_a"], model) == {}
    assert await room.vectors.waiting(model) == 0
    assert await room.vectors.sweep(model) == 1
    await room.store.update_base(make_base())
    assert await room.found(embedder, "first") == []
    await room.embed(embedder)
    assert sorted(await room.found(embedder, "first")) == ["first", "second"]


async def test_a_refused_text_is_not_taken_again_and_not_found(room: Room) -> None:
    embedder = FakeEmbedder()
    model = await embedder.model()
    await put(room.store, "a", ["bad", "good"])
    texts = await room.taken(embedder)
    await room.vectors.refuse(model, [text for text in texts if text.text == "bad"])
    await room.vectors.give_back([text for text in texts if text.text == "good"])
    await room.embed(embedder)
    assert embedder.texts == ["good"]
    assert await room.found(embedder, "bad") == ["good"]
    assert await room.vectors.progress(["kb_a"], model) == {"kb_a": EmbeddingProgress(1, 2)}
    assert await room.vectors.waiting(model) == 0


async def test_vectors_of_two_models_are_never_compared(room: Room) -> None:
    former, new = FakeEmbedder(name="former"), FakeEmbedder(name="new", dimension=32)
    await put(room.store, "a", ["first", "second"])
    await room.embed(former)
    assert await room.found(new, "first") == []
    texts = await room.taken(new, limit=1)
    await room.vectors.sweep(await new.model())
    assert len(await room.found(former, "first")) == 2
    await room.vectors.put(
        await new.model(), list(zip(texts, await new.embed([texts[0].text], TextKind.PASSAGE), strict=True))
    )
    assert await room.found(new, "first") == [texts[0].text]
    assert await room.vectors.waiting(await new.model()) == 1
    await room.embed(new)
    assert await room.vectors.sweep(await new.model()) == 2
    assert await room.found(former, "first") == []
    assert len(await room.found(new, "first")) == 2


async def test_a_vector_of_another_dimension_is_no_vector_of_the_model(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first"])
    texts = await room.taken(embedder)
    wrong = await FakeEmbedder(dimension=3).embed(["first"], TextKind.PASSAGE)
    with pytest.raises(ValueError, match="numbers"):
        await room.vectors.put(await embedder.model(), [(texts[0], wrong[0])])


async def test_a_foreign_base_changes_nothing(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["red apples and pears", "red plums", "green pears"])
    await room.embed(embedder)
    query = await asked(embedder, "red pears")
    before = await room.vectors.nearest(["kb_a"], query, 10)
    await put(room.store, "b", [f"red pears {number}" for number in range(30)], base_id="kb_b")
    await room.embed(embedder)
    assert await room.vectors.nearest(["kb_a"], query, 10) == before
    assert len(before) == 3


async def test_equal_scores_are_ordered_by_content(room: Room) -> None:
    embedder = FakeEmbedder()
    for name in ("c", "a", "b"):
        await put(room.store, name, ["the same", f"other {name}"])
    await room.embed(embedder)
    hits = await room.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 2)
    assert [(hit.document_name, hit.chunk.text) for hit in hits] == [("a", "the same"), ("b", "the same")]


async def test_filters_leave_documents_out(room: Room) -> None:
    embedder = FakeEmbedder()
    for name in ("a", "b", "c"):
        document = await put(room.store, name, [f"the same {name}", "more"])
        if name == "b":
            assert await room.attachments.set_attributes("kb_a", document.id, {"year": 2026})
    await room.embed(embedder)
    year = Comparison(type="eq", key="year", value=2026)
    hits = await room.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 10, year)
    assert {hit.document_name for hit in hits} == {"b"}
    assert len(hits) == 2
    none = Comparison(type="eq", key="year", value=1999)
    assert await room.vectors.nearest(["kb_a"], await asked(embedder, "the same"), 10, none) == ()


async def test_no_base_and_no_limit_find_nothing(room: Room) -> None:
    embedder = FakeEmbedder()
    await put(room.store, "a", ["first"])
    await room.embed(embedder)
    query = await asked(embedder, "first")
    assert await room.vectors.nearest([], query, 10) == ()
    assert await room.vectors.nearest(["kb_a"], query, 0) == ()
    assert await room.vectors.nearest(["kb_b"], query, 10) == ()
