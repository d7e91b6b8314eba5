"""Reading documents again that an earlier reader has read."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from backend.extraction.domain.media_types import PDF, READER_VERSIONS, TEXT
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.services.rereading import RereadDocument, Rereading, RereadOutcome
from backend.search.domain.chunks import Chunk
from shared.errors import Unavailable
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.pictures import FakePictureReader, picture_of, scan_of
from tests.fakes.store_knowledge import FakeKnowledge


@pytest.fixture
async def store() -> FakeKnowledge:
    knowledge = FakeKnowledge()
    await knowledge.create_base(make_base(), "ann")
    for name in ("a", "b", "c"):
        await put(knowledge, name, ["Kept whole,", "not in two."])
    return knowledge


@pytest.fixture
async def reader() -> AsyncIterator[LibraryDocumentReader]:
    own = LibraryDocumentReader()
    yield own
    await own.close()


async def reread(store: FakeKnowledge, reader: LibraryDocumentReader, most: int = 9) -> list[RereadDocument]:
    """Read again, and break off after so many."""
    told: list[RereadDocument] = []
    async with aclosing(Rereading(store, reader).run()) as documents:
        async for one in documents:
            told.append(one)
            if len(told) == most:
                break
    return told


async def test_what_is_outdated_is_read_again_once(store: FakeKnowledge, reader: LibraryDocumentReader) -> None:
    before = await store.all_documents(["kb_a"])
    told = await reread(store, reader)
    assert [(one.number, one.of, one.outcome) for one in told] == [(n, 3, RereadOutcome.READ) for n in (1, 2, 3)]
    after = await store.all_documents(["kb_a"])
    made = {"chunk_count": 1, "notes": (), "reader_version": READER_VERSIONS[TEXT]}
    assert after == tuple(document.model_copy(update=made) for document in before)
    (chunk,) = await store.chunks(after[0].id)
    assert chunk.text == "Kept whole,\n\nnot in two."
    assert await reread(store, reader) == []


async def test_a_run_that_was_broken_off_goes_on(store: FakeKnowledge, reader: LibraryDocumentReader) -> None:
    (first,) = await reread(store, reader, most=1)
    rest = await reread(store, reader)
    assert [one.of for one in rest] == [2, 2]
    assert first.document_id not in {one.document_id for one in rest}


async def test_what_is_refused_keeps_its_text(store: FakeKnowledge, reader: LibraryDocumentReader) -> None:
    document, chunks = await document_of(b"\x00no text", store)
    told = {one.document_id: one for one in await reread(store, reader)}
    assert (told[document.id].outcome, "U+0000" in told[document.id].reason) == (RereadOutcome.REFUSED, True)
    assert await store.chunks(document.id) == chunks


async def test_pages_that_nobody_has_read_are_read_once_there_is_an_engine(store: FakeKnowledge) -> None:
    body = scan_of("First page.", picture_of("Second."))
    document, _ = await document_of(body, store, media_type=PDF, unread_pictures=1, reader_version=READER_VERSIONS[PDF])
    for name in ("a", "b", "c"):
        await store.delete_document("kb_a", name)
    for engine, told, unread in (
        (FakePictureReader(otherwise=Unavailable("away")), "read", 1),
        (FakePictureReader("Second."), "read", 0),
    ):
        reader = LibraryDocumentReader(engine=engine)
        assert await reread(store, reader) == []
        (one,) = [each async for each in Rereading(store, reader, reads_pictures=True).run()]
        await reader.close()
        found = await store.find_document("kb_a", "d")
        assert found is not None
        assert (one.outcome, found.unread_pictures) == (told, unread)
    assert [chunk.text for chunk in await store.chunks(document.id)] == ["First page.\n\nSecond."]


async def test_what_an_engine_had_read_is_not_lost_without_it(
    store: FakeKnowledge, reader: LibraryDocumentReader
) -> None:
    document, chunks = await document_of(scan_of("First page.", picture_of("Second.")), store, media_type=PDF)
    told = {one.document_id: one for one in await reread(store, reader)}
    assert (told[document.id].outcome, "would be lost" in told[document.id].reason) == (RereadOutcome.REFUSED, True)
    assert await store.chunks(document.id) == chunks


async def document_of(body: bytes, store: FakeKnowledge, **further: object) -> tuple[Document, tuple[Chunk, ...]]:
    await put(store, "d", ["As it was."])
    document = await store.find_document("kb_a", "d")
    assert document is not None
    chunks = await store.chunks(document.id)

    async def batches() -> AsyncIterator[tuple[Chunk, ...]]:
        yield chunks

    await store.put_document(document.model_copy(update=further), body, batches())
    return document, await store.chunks(document.id)
