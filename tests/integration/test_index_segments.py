"""Segments are merged, and share a base with what the release before has put, without a change to what is found."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Connection, insert, text

from backend.foundation.sql.database import Database
from backend.knowledge.sql import tables
from backend.knowledge.sql.rows import chunk_parameters
from backend.search.domain.shared_runs import MODEL_TEXT_RUNS, sequences_of
from backend.search.domain.tokenizing import tokenize
from backend.search.sql.indexed_bases import BaseReader
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.segment_rows import VisibleSegments
from backend.search.sql.tables import PAGE_BITS
from tests.contract.index_cases import forget_further_tokens
from tests.contract.knowledge_cases import made_up, make_base, make_document, put
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store, word_runs
from tests.fakes.statement_plans import noted_queries
from tests.fakes.store_knowledge import FakeKnowledge

SAID = "The escalation ladder begins with the duty engineer and ends with the vault keeper of the northern site."
QUERIES = ("w1 w2 w3", "w7 w2199 rare", "w2000 w12 w55 w0", "lonely", "guide", "w5 " * 300)


@pytest.fixture(params=first_of("sqlite", "postgresql"))
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield opened


@pytest.fixture
def replicas(database: Database) -> list[SqlRetrieval]:
    """Two that search one database, each of which keeps what it has read of segments."""
    return [SqlRetrieval(database), SqlRetrieval(database)]


async def assert_same(
    replicas: Sequence[SqlRetrieval], expected: FakeKnowledge, base_ids: Sequence[str] = ("kb_a",)
) -> None:
    for query in QUERIES:
        wanted = await expected.search(base_ids, query, 7)
        assert [await each.search(base_ids, query, 7) for each in replicas] == [wanted] * len(replicas)


async def segment_sizes(database: Database) -> list[int]:
    query = "SELECT chunk_count FROM index_segment WHERE is_visible ORDER BY first_number"
    return list(await database.read(lambda connection: connection.execute(text(query)).scalars().all()))


async def count(database: Database, table: str) -> int:
    return await database.read(lambda c: c.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one())


async def test_merged_segments_find_the_same(database: Database, replicas: list[SqlRetrieval]) -> None:
    store, expected = knowledge_store(database, FakeClock()), FakeKnowledge()
    for one in (store, expected):
        await one.create_base(make_base(), "ann")
        for number in range(20):
            await put(one, f"{number:02}", made_up(number, 10))
    await put(store, "03", made_up(30, 10))
    await put(expected, "03", made_up(30, 10))
    await store.maintenance.index.tidy()
    assert await segment_sizes(database) == [220]
    for one in (store, expected):
        await put(one, "20", made_up(20, 10))
    await store.maintenance.index.tidy()
    assert await segment_sizes(database) == [220, 11]
    await assert_same(replicas, expected)
    for number in (5, 6, 12, 19):
        for one in (store, expected):
            await one.delete_document("kb_a", f"{number:02}")
    assert await count(database, "index_gone") > 0
    await assert_same(replicas, expected)
    for number in (7, 9, 10, 11):
        for one in (store, expected):
            await one.delete_document("kb_a", f"{number:02}")
    await store.maintenance.index.tidy()
    assert await segment_sizes(database) == [132, 11]
    await assert_same(replicas, expected)
    await assert_no_page_without_segment(database)


async def test_documents_that_change_while_their_segments_are_merged_are_found_as_they_are(
    database: Database, replicas: list[SqlRetrieval]
) -> None:
    store, expected = knowledge_store(database, FakeClock(), slice_seconds=0), FakeKnowledge()
    for one in (store, expected):
        await one.create_base(make_base(), "ann")
        for number in range(9):
            await put(one, f"{number:02}", made_up(number, 5))
    tidying = asyncio.create_task(store.maintenance.index.tidy())
    for number in range(4):
        for one in (store, expected):
            await one.delete_document("kb_a", f"{number:02}")
            await put(one, "00", made_up(50 + number, 5))
        await assert_same(replicas, expected)
    await tidying
    await store.maintenance.index.tidy()
    await assert_same(replicas, expected)
    await assert_no_page_without_segment(database)


async def test_words_of_a_base_are_known_while_its_segments_are_merged(database: Database) -> None:
    """A look-up that read segments before a merge and their pages behind it would not find what stands there."""
    store = knowledge_store(database, FakeClock())
    await store.create_base(make_base(), "ann")
    protected = word_runs(database)
    said = sequences_of(SAID, MODEL_TEXT_RUNS)
    await put(store, "00", [SAID])
    for number in range(1, 40):
        await put(store, f"{number:02}", made_up(number, 1))
        merging = asyncio.create_task(store.maintenance.index.tidy())
        found = [await protected.holds_run(["kb_a"], said)]
        while not merging.done():
            found.append(await protected.holds_run(["kb_a"], said))
        await merging
        assert all(found)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_search_is_two_statements_and_two_more_for_what_is_not_kept_of_segments(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with noted_queries() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database:
            store, retrieval = knowledge_store(database, FakeClock()), SqlRetrieval(database)
            await store.create_base(make_base(), "ann")
            protected, said = word_runs(database), sequences_of(SAID, MODEL_TEXT_RUNS)
            sizes: list[int] = []
            for name in ("00", "01"):
                await put(store, name, [SAID])
                for _ in range(2):
                    sent.clear()
                    assert await retrieval.search(["kb_a"], "engineer", 7)
                    sizes.append(len(sent))
                    assert await protected.holds_run(["kb_a"], said)
                assert not any("index_segment.lengths" in query.statement for query in sent[sizes[-1] :])
    assert sizes == [4, 2, 4, 2]


async def test_what_is_kept_is_of_the_segment_that_has_the_id(database: Database, replicas: list[SqlRetrieval]) -> None:
    """A database that was brought back from a backup gives ids of segments again."""
    clock = FakeClock()
    store, expected = knowledge_store(database, clock), FakeKnowledge()
    await store.create_base(make_base(), "ann")
    await expected.create_base(make_base(), "ann")
    await put(store, "00", ["w1 w2", "w1 w3 w4"])
    for each in replicas:
        assert await each.search(["kb_a"], "w1", 7)
    await store.delete_document("kb_a", "00")
    await store.maintenance.index.tidy()
    again = "UPDATE knowledge_base SET next_chunk_number = 0 WHERE id = 'kb_a'"
    await database.write(lambda connection: connection.execute(text(again)))
    clock.advance(1)
    for one in (store, expected):
        await put(one, "00", ["w1 w2 w5 w6", "w1"])
    for change in ("UPDATE index_segment SET id = 1", "UPDATE index_page SET id = id & 1048575 | 1048576"):
        await database.write(lambda connection, change=change: connection.execute(text(change)))
    await assert_same(replicas, expected)


async def test_what_is_kept_of_all_bases_takes_no_more_than_it_may(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with noted_queries() as sent:
        async with migrated(database_url("sqlite", request, tmp_path)) as database:
            store, bases = knowledge_store(database, FakeClock()), BaseReader(database.dialect)
            for base_id in ("kb_a", "kb_b"):
                await store.create_base(make_base(base_id), "ann")
                await put(store, "00", ["w1 w2"], base_id=base_id)
            kept = VisibleSegments(database.dialect, len, most_bytes=2_600)

            def read(connection: Connection, base_id: str) -> int:
                (base,) = bases.read(connection, [base_id])
                sent.clear()
                assert all(kept.lengths(connection, base.segments).values())
                assert all(kept.pages(connection, {one.id << PAGE_BITS: one for one in base.segments}).values())
                return len(sent)

            asked = ("kb_a", "kb_a", "kb_b", "kb_b", "kb_a")
            assert [await database.snapshot(partial(read, base_id=one)) for one in asked] == [2, 0, 2, 0, 2]


async def assert_no_page_without_segment(database: Database) -> None:
    orphans = "index_page WHERE id >> 20 NOT IN (SELECT id FROM index_segment)"
    assert await count(database, orphans) == 0
    assert await count(database, "index_segment WHERE NOT is_visible") == 0


async def test_what_the_release_before_puts_and_deletes_is_found_and_gone(
    database: Database, replicas: list[SqlRetrieval]
) -> None:
    store, expected = knowledge_store(database, FakeClock()), FakeKnowledge()
    for one in (store, expected):
        await one.create_base(make_base(), "ann")
        await put(one, "new", made_up(1, 30))
        await put(one, "gone", made_up(2, 30))
    await put(expected, "old", made_up(3, 40))
    await database.write(lambda connection: put_as_before(connection, "old", made_up(3, 40)))
    await assert_same(replicas, expected)
    assert (await store.maintenance.sweep(is_only_replica=True)) is None
    assert await segment_sizes(database) == [103]
    await assert_same(replicas, expected)

    await expected.delete_document("kb_a", "gone")
    await database.write(lambda connection: delete_as_before(connection, "gone"))
    await assert_same(replicas, expected)
    await store.maintenance.sweep(is_only_replica=True)
    assert await count(database, "knowledge_base WHERE indexed_version <> version") == 0
    await assert_same(replicas, expected)
    for one in (store, expected):
        await one.delete_document("kb_a", "old")
    await assert_same(replicas, expected)


async def test_a_document_of_the_release_before_is_replaced_before_it_is_indexed(
    database: Database, replicas: list[SqlRetrieval]
) -> None:
    store, expected = knowledge_store(database, FakeClock()), FakeKnowledge()
    for one in (store, expected):
        await one.create_base(make_base(), "ann")
    await put(expected, "old", made_up(3, 40))
    await database.write(lambda connection: put_as_before(connection, "old", made_up(3, 40)))
    for one in (store, expected):
        await put(one, "old", made_up(4, 30))
    await assert_same(replicas, expected)


def put_as_before(connection: Connection, name: str, texts: Sequence[str]) -> None:
    """Write what the release before writes of a document."""
    document, body, chunks = make_document(name, texts)
    base = {"base_id": document.knowledge_base_id}
    row = {
        **document.model_dump(exclude={"file_id", "filename", "attributes", "notes"}),
        "edition_id": f"ed_{name}",
        "body": body,
    }
    connection.execute(insert(tables.document), row)
    first = connection.execute(
        text("SELECT next_chunk_number FROM knowledge_base WHERE id = :base_id"), base
    ).scalar_one()
    tokens = [tokenize(chunk.join_headings) for chunk in chunks]
    for number, chunk in enumerate(chunks, first):
        connection.execute(insert(tables.chunk), chunk_parameters(f"ed_{name}", base["base_id"], chunk, number))
    if connection.dialect.name == "sqlite":
        for number, of_chunk in enumerate(tokens, first):
            adding = text('INSERT INTO "search_kb_a" (rowid, tokens) VALUES (:number, :tokens)')
            connection.execute(adding, {"number": number, "tokens": " ".join(of_chunk)})
    else:
        posting = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])
        for word in {token for of_chunk in tokens for token in of_chunk}:
            found = [
                (number, of_chunk.count(word), len(of_chunk))
                for number, of_chunk in enumerate(tokens, first)
                if word in of_chunk
            ]
            adding = text("INSERT INTO search_posting VALUES (:base_id, :word, 0, CAST(:packed AS bytea))")
            connection.execute(adding, {**base, "word": word, "packed": np.array(found, posting).tobytes()})
    grow(connection, len(chunks), sum(map(len, tokens)), first + len(chunks))


def delete_as_before(connection: Connection, name: str) -> None:
    """Delete a document as the release before does, which knows nothing of segments."""
    edition = "(SELECT edition_id FROM document WHERE name = :name)"
    found = connection.execute(text(f"SELECT * FROM chunk WHERE edition_id = {edition}"), {"name": name}).all()
    _, _, chunks = make_document(name, [row.text for row in found])
    tokens = sum(len(tokenize(chunk.join_headings)) for chunk in chunks)
    connection.execute(text(f"DELETE FROM chunk WHERE edition_id = {edition}"), {"name": name})
    connection.execute(text("DELETE FROM document WHERE name = :name"), {"name": name})
    grow(connection, -len(found), -tokens, None)


def grow(connection: Connection, chunks: int, tokens: int, next_number: int | None) -> None:
    growing = """
        UPDATE knowledge_base SET version = version + 1,
        chunk_count = chunk_count + :chunks, index_token_count = index_token_count + :tokens,
        next_chunk_number = COALESCE(CAST(:next_number AS integer), next_chunk_number)
    """
    connection.execute(text(growing), {"chunks": chunks, "tokens": tokens, "next_number": next_number})


async def test_segments_of_earlier_tokens_are_written_anew_while_searches_go_on(
    database: Database, replicas: list[SqlRetrieval]
) -> None:
    store = knowledge_store(database, FakeClock(), slice_seconds=0)
    await store.create_base(make_base(), "ann")
    for number in range(30):
        await put(store, f"{number:02}", [f"Müller {number}", f"plain {number}"])
    await store.delete_document("kb_a", "07")
    await store.maintenance.index.tidy()
    await database.write(forget_further_tokens)
    assert [await each.search(["kb_a"], "Mueller", 100) for each in replicas] == [(), ()]
    before = await replicas[0].search(["kb_a"], "Müller plain", 100)
    assert len(before) == 58
    renewing = asyncio.create_task(store.maintenance.index.tidy())
    while not renewing.done():
        assert await replicas[0].search(["kb_a"], "plain", 100) == await replicas[1].search(["kb_a"], "plain", 100)
        assert len(await replicas[1].search(["kb_a"], "Müller plain", 100)) == 58
    await renewing
    assert [len(await each.search(["kb_a"], "Mueller", 100)) for each in replicas] == [29, 29]
    after = await replicas[0].search(["kb_a"], "Müller plain", 100)
    assert [(hit.chunk.id, hit.score) for hit in after] == [(hit.chunk.id, hit.score) for hit in before]
    assert await count(database, "index_segment WHERE tokens_version < 2") == 0
    assert await count(database, "index_gone") == 0
    await assert_no_page_without_segment(database)
