"""Searches on SQLite read documents from an index, and thereby no page of their bodies."""

from pathlib import Path

from sqlalchemy import Connection

from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.statements import driver_of
from backend.knowledge.domain.filters import Comparison
from backend.knowledge.sql.found_chunks import ChunkRows
from backend.knowledge.sql.search_index import Found
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.migrations.migrate import migrate
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.clock import FakeClock

YEAR = Comparison(type="eq", key="year", value=2026)


async def test_hits_and_filters_read_documents_from_the_index_alone(tmp_path: Path) -> None:
    database = open_database(f"sqlite+aiosqlite:///{tmp_path}/ballast.db")
    await migrate(database)
    store, chunks = SqlKnowledgeStore(database, FakeClock()), ChunkRows("sqlite")
    await store.create_base(make_base(), "ann")
    await put(store, "a", ["one", "two"])
    ran: list[str] = []

    def work(connection: Connection) -> list[str]:
        driver = driver_of(connection)
        driver.set_trace_callback(ran.append)
        assert len(chunks.hits(connection, [Found("kb_a", 1, 1.0)])) == 1
        assert chunks.allowed(connection, ["kb_a"], YEAR) == {}
        driver.set_trace_callback(None)
        plans = [driver.execute(f"EXPLAIN QUERY PLAN {each}").fetchall() for each in ran if each.startswith("SELECT")]
        return [row[3] for plan in plans for row in plan if " document " in row[3]]

    try:
        used = await database.read(work)
    finally:
        await database.close()
    assert len(used) == 2
    assert all("USING COVERING INDEX ix_document_shown" in each for each in used), used
