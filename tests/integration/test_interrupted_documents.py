"""Documents come and go in many transactions: interrupted at any of them, readers see the old or the new whole."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import LEFT_BEHIND_AFTER, run_in_short_transactions
from backend.knowledge.domain.attachments import Attachment
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.maintenance import clear_base
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.search.domain.tokenizing import tokenize
from backend.search.sql.index import SqlSearchIndex
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.segment_index import SegmentIndex
from shared.errors import Unavailable
from tests.contract.knowledge_cases import made_up, make_base, make_document, put
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.frail_database import FrailDatabase
from tests.fakes.store_knowledge import FakeKnowledge

QUERIES = ("w1 w2 w3", "w7 w2199 rare", "w2000 w12 w55 w0", "lonely", "guide")


class WatchedDatabase(FrailDatabase):
    """A database that waits behind its second write until it may go on."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, 1_000)
        self.is_half_way, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def write(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        result = await super().write(work, **options)
        if self.writes_left == 998:
            self.is_half_way.set()
            await self.may_go_on.wait()
        return result


class MergingDatabase(FrailDatabase):
    """A PostgreSQL database in which the transaction that leaves one segment stays open until it may go on."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, 1_000)
        self.is_merged, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def write(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        def held(connection: Connection) -> Any:
            result = work(connection)
            visible = connection.execute(text("SELECT COUNT(*) FROM index_segment WHERE is_visible")).scalar_one()
            if visible == 1:
                self.is_merged.set()
                await_only(self.may_go_on.wait())
            return result

        return await super().write(held, **options)


@pytest.fixture
async def postgres(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with migrated(database_url("postgresql", request, tmp_path)) as opened:
        yield opened


@pytest.fixture(params=first_of("sqlite", "postgresql"))
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield opened


def store_in(database: Any, clock: FakeClock | None = None) -> SqlKnowledgeStore:
    """Return a store that commits at every step."""
    return SqlKnowledgeStore(
        database, clock or FakeClock(), SqlSearchIndex(database, clock or FakeClock()), slice_seconds=0
    )


OLD, NEW, OTHER = made_up(1), made_up(2), made_up(3, 20)
Change = Callable[[SqlKnowledgeStore | FakeKnowledge, str], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "new": lambda store, base_id: put(store, "new", NEW, base_id=base_id),
    "replaced": lambda store, base_id: put(store, "old", NEW, base_id=base_id),
    "deleted": lambda store, base_id: store.delete_document(base_id, "old"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_readers_see_all_or_nothing_wherever_a_process_dies(database: Database, change: str) -> None:
    before, after = FakeKnowledge(), FakeKnowledge()
    outcomes: list[bool] = []
    while True not in outcomes:
        base_id = f"kb_{len(outcomes)}"
        for store in (before, after, store_in(database)):
            await filled(store, base_id)
        await CHANGES[change](after, base_id)
        is_done = await died(database, CHANGES[change], base_id, writes=len(outcomes))
        outcomes.append(is_done)
        shown = after if await is_changed(database, base_id, after) else before
        await assert_shown(database, shown, base_id)
        await store_in(database).maintenance.sweep(is_only_replica=True)
        await assert_shown(database, shown, base_id)
        await database.read(lambda connection, base_id=base_id: assert_nothing_left(connection, base_id))
    assert len(outcomes) > 3


async def died(database: Database, change: Change, base_id: str, writes: int) -> bool:
    """Change a document in a process that dies behind so many writes; return whether it lived to the end."""
    try:
        await change(store_in(FrailDatabase(database, writes)), base_id)
    except Unavailable:
        return False
    return True


async def filled(store: SqlKnowledgeStore | FakeKnowledge, base_id: str) -> None:
    await store.create_base(make_base(base_id), "ann")
    await put(store, "other", OTHER, base_id=base_id)
    await put(store, "old", OLD, base_id=base_id)


async def is_changed(database: Database, base_id: str, after: FakeKnowledge) -> bool:
    stored = await SqlRetrieval(database).read_all([base_id], 10**9)
    expected = await after.read_all([base_id], 10**9)
    assert stored is not None
    assert expected is not None
    return [hit.chunk.text for hit in stored] == [hit.chunk.text for hit in expected]


async def assert_shown(database: Database, expected: FakeKnowledge, base_id: str) -> None:
    """Compare all that a reader can see."""
    store, retrieval = store_in(database), SqlRetrieval(database)
    documents = await expected.all_documents([base_id])
    assert await store.all_documents([base_id]) == documents
    for document in documents:
        assert await store.chunks(document.id) == await expected.chunks(document.id)
        assert await store.document_body(document.id) == await expected.document_body(document.id)
    assert await retrieval.read_all([base_id], 10**9) == await expected.read_all([base_id], 10**9)
    for query in QUERIES:
        assert await retrieval.search([base_id], query, 7) == await expected.search([base_id], query, 7)


def assert_nothing_left(connection: Connection, base_id: str) -> None:
    """Look for rows that belong to no document, and count the index again."""
    assert connection.execute(text("SELECT COUNT(*) FROM unseen_edition")).scalar() == 0
    chunks = connection.execute(
        text("""
            SELECT chunk.number, document.id, chunk.text FROM chunk
            LEFT JOIN document ON document.edition_id = chunk.edition_id
            WHERE chunk.knowledge_base_id = :base_id
        """),
        {"base_id": base_id},
    ).all()
    assert None not in {document_id for _, document_id, _ in chunks}
    counts: Counter[str] = Counter()
    for _, document_id, said in chunks:
        _, _, (chunk,) = make_document("x", [said], document_id=document_id)
        counts.update(set(tokenize(chunk.join_headings)))
    index = SegmentIndex(connection.dialect.name)
    assert index.chunk_counts(connection, base_id, [*counts, "nowhere"]) == counts
    assert connection.execute(text("SELECT COUNT(*) FROM index_segment WHERE NOT is_visible")).scalar() == 0
    orphans = "SELECT COUNT(*) FROM index_page WHERE id >> 20 NOT IN (SELECT id FROM index_segment)"
    assert connection.execute(text(orphans)).scalar() == 0


async def test_who_waits_for_the_database_gets_their_turn_while_a_document_is_put(database: Database) -> None:
    await filled(store_in(database), "kb_a")
    watched = WatchedDatabase(database)
    putting = asyncio.create_task(put(store_in(watched), "new", NEW))
    await watched.is_half_way.wait()
    await store_in(database).create_base(make_base("kb_b"), "ann")
    await put(store_in(database), "meanwhile", ["lonely"])
    watched.may_go_on.set()
    await putting
    expected = FakeKnowledge()
    await filled(expected, "kb_a")
    await put(expected, "new", NEW)
    await put(expected, "meanwhile", ["lonely"])
    await assert_shown(database, expected, "kb_a")


async def test_what_was_left_behind_goes_with_a_later_put_and_what_is_under_way_stays(database: Database) -> None:
    clock = FakeClock()
    await filled(store_in(database, clock), "kb_a")
    with pytest.raises(Unavailable):
        await put(store_in(FrailDatabase(database, 2), clock), "new", NEW)
    await put(store_in(database, clock), "a", ["one"])
    assert await unseen_count(database) == 1
    clock.advance(LEFT_BEHIND_AFTER.total_seconds() + 1)
    await put(store_in(database, clock), "a", ["two"])
    assert await unseen_count(database) == 0
    await database.read(lambda connection: assert_nothing_left(connection, "kb_a"))


async def test_a_base_and_its_files_are_there_with_the_first_write(database: Database) -> None:
    waits = Attachment(
        knowledge_base_id="kb_a",
        file_id="file-a",
        tenant="acme",
        user_id="ann",
        filename="a.txt",
        attributes={},
        created_at=FakeClock().now(),
    )
    with pytest.raises(Unavailable):
        await store_in(FrailDatabase(database, 0)).create_base(make_base(), "ann", None, [waits])
    assert await store_in(database).bindings("acme", "ann", None) == ()
    await store_in(FrailDatabase(database, 1)).create_base(make_base(), "ann", None, [waits])
    counted = await SqlAttachmentStore(database, FakeClock()).file_counts(["kb_a"])
    assert counted["kb_a"].in_progress == 1


async def unseen_count(database: Database) -> int:
    return await database.read(lambda c: c.execute(text("SELECT COUNT(*) FROM unseen_edition")).scalar_one())


async def test_who_was_taken_for_dead_stores_nothing(database: Database) -> None:
    await filled(store_in(database), "kb_a")
    watched = WatchedDatabase(database)
    putting = asyncio.create_task(put(store_in(watched), "new", NEW))
    await watched.is_half_way.wait()
    await store_in(database).maintenance.sweep(is_only_replica=True)
    watched.may_go_on.set()
    with pytest.raises(Unavailable):
        await putting
    assert await store_in(database).find_document("kb_a", "new") is None
    await database.read(lambda connection: assert_nothing_left(connection, "kb_a"))


async def test_two_who_clear_the_same_document_version_count_it_once(database: Database) -> None:
    await filled(store_in(database), "kb_a")
    watched = WatchedDatabase(database)
    deleting = asyncio.create_task(store_in(watched).delete_document("kb_a", "old"))
    await watched.is_half_way.wait()
    await store_in(database).maintenance.sweep(is_only_replica=True)
    watched.may_go_on.set()
    assert await deleting
    await database.read(lambda connection: assert_nothing_left(connection, "kb_a"))


async def wait_for_lock(database: Database) -> None:
    """Wait until a transaction waits for another one."""
    waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not await database.read(lambda connection: connection.execute(text(waiting)).scalar_one()):  # noqa: ASYNC110 -- it tells nobody
        await asyncio.sleep(0)


async def test_a_document_that_goes_while_its_segment_is_merged_leaves_no_word_in_the_index(postgres: Database) -> None:
    store, expected = store_in(postgres), FakeKnowledge()
    for one in (store, expected):
        await one.create_base(make_base(), "ann")
        for number in range(9):
            await put(one, f"{number:02}", made_up(number, 5))
    await expected.delete_document("kb_a", "00")
    watched = WatchedDatabase(postgres)
    deleting = asyncio.create_task(store_in(watched).delete_document("kb_a", "00"))
    await watched.is_half_way.wait()
    merging: Any = MergingDatabase(postgres)
    index = SqlSearchIndex(merging, FakeClock())
    index.note_change("kb_a")
    tidying = asyncio.create_task(index.tidy())
    await merging.is_merged.wait()
    watched.may_go_on.set()
    await wait_for_lock(postgres)
    merging.may_go_on.set()
    await asyncio.gather(deleting, tidying)
    for query in QUERIES:
        assert await SqlRetrieval(postgres).search(["kb_a"], query, 7) == await expected.search(["kb_a"], query, 7)


async def test_a_base_goes_behind_whoever_changes_a_document_of_it(postgres: Database) -> None:
    await filled(store_in(postgres), "kb_a")
    is_locked, may_go_on = asyncio.Event(), asyncio.Event()

    def change(connection: Connection) -> None:
        connection.execute(text("SELECT 1 FROM knowledge_base FOR UPDATE"))
        is_locked.set()
        await_only(may_go_on.wait())
        connection.execute(text("UPDATE document SET index_token_count = 0"))

    changing = asyncio.create_task(postgres.write(change))
    await is_locked.wait()
    steps = clear_base("kb_a", SqlSearchIndex(postgres, FakeClock()))
    clearing = asyncio.create_task(run_in_short_transactions(postgres, steps, slice_seconds=60))
    await wait_for_lock(postgres)
    may_go_on.set()
    await asyncio.gather(changing, clearing)
    assert await postgres.read(lambda c: c.execute(text("SELECT COUNT(*) FROM knowledge_base")).scalar_one()) == 0


async def test_a_base_that_is_deleted_takes_along_what_is_on_its_way(database: Database) -> None:
    await filled(store_in(database), "kb_a")
    watched = WatchedDatabase(database)
    changes: Sequence[asyncio.Task[Any]] = [asyncio.create_task(put(store_in(watched), "new", NEW))]
    await watched.is_half_way.wait()
    await store_in(database).delete_base("kb_a")
    watched.may_go_on.set()
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["NotFound"]
    assert await database.read(lambda c: c.execute(text("SELECT COUNT(*) FROM chunk")).scalar_one()) == 0
