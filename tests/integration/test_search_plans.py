"""Searches of bases with large documents read no body, and neither all documents nor all chunks."""

import random
import re
from pathlib import Path

import pytest
from sqlalchemy import insert, text, update

from backend.foundation.sql.database import Database
from backend.knowledge.sql import tables
from backend.knowledge.sql.rows import chunk_parameters
from backend.search.domain.filters import Comparison
from backend.search.domain.shared_runs import MODEL_TEXT_RUNS, sequences_of
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.tables import index_page
from backend.search.sql.vectors import SqlChunkVectors
from tests.contract.knowledge_cases import make_base, make_document, put
from tests.contract.store_cases import database_url, migrated
from tests.contract.vector_cases import LEASE, asked
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.sql_knowledge import knowledge_store, word_runs
from tests.fakes.statement_plans import Plan, noted_queries, plans_of

BASES, DOCUMENTS_A_BASE, CHUNKS_A_DOCUMENT, BODY_BYTES = 20, 40, 6, 30_000
YEAR = Comparison(type="ne", key="year", value=2026)
SAID = "the duty engineer calls the vault keeper of the northern site before anything is opened at all"
LARGE = ("document", "chunk", "edition_vectors", "index_page", "search_vector")
BEHIND_BODY = ("body", "indexed_edition_id", "index_token_count", "file_id", "filename", "attributes")
MORE_VECTORS = """
    INSERT INTO search_vector (space_id, number, digest, vector)
    SELECT space_id + 100 * other, number, digest, vector FROM search_vector, generate_series(1, 10) AS other
"""
UNUSED_PAGES = 1 << 50
UNINDEXED = "ix_document_unindexed"


async def fill(database: Database) -> None:
    """Give each base documents of real size, one of them with an index."""
    store, dice = knowledge_store(database, FakeClock()), random.Random(0)
    documents: list[dict[str, object]] = []
    chunks: list[dict[str, object]] = []
    for base_id in (f"kb_{number}" for number in range(BASES)):
        await store.create_base(make_base(base_id), "ann")
        await put(store, "a", [SAID, "of rivers", "of salmon"], base_id=base_id)
        for number in range(DOCUMENTS_A_BASE):
            document, _, made = make_document(f"{number}", ["one"] * CHUNKS_A_DOCUMENT, base_id=base_id)
            edition = f"{base_id} {number}"
            stored = {"edition_id": edition, "indexed_edition_id": edition, "body": dice.randbytes(BODY_BYTES)}
            documents.append({**document.model_dump(), **stored, "attributes": "{}", "notes": None})
            first = 10 + CHUNKS_A_DOCUMENT * number
            chunks += [chunk_parameters(edition, base_id, chunk, first + chunk.ordinal) for chunk in made]
    await store.create_base(make_base("kb_small"), "ann")
    await put(store, "a", [SAID], base_id="kb_small")
    await database.write(lambda connection: connection.execute(insert(tables.document), documents))
    await database.write(lambda connection: connection.execute(insert(tables.chunk), chunks))
    pages = [{"id": UNUSED_PAGES + number, "postings": b"0" * 4_000} for number in range(500)]
    await database.write(lambda connection: connection.execute(insert(index_page), pages))
    is_large = tables.knowledge_base.c.id != "kb_small"
    sizes = update(tables.knowledge_base).where(is_large).values(chunk_count=CHUNKS_A_DOCUMENT * DOCUMENTS_A_BASE)
    await database.write(lambda connection: connection.execute(sizes))


async def search_all_ways(database: Database, embedder: FakeEmbedder) -> None:
    """Search by words and by meaning, with and without filters, and ask for all that goes with searches."""
    retrieval, vectors, bases = SqlRetrieval(database), SqlChunkVectors(database), ["kb_0", "kb_1"]
    query, model = await asked(embedder, SAID), await embedder.model()
    for filters in (None, YEAR):
        assert await retrieval.search(bases, SAID, 10, filters)
        assert await vectors.nearest(bases, query, 10, filters)
    assert await retrieval.read_all(bases, 100) is None
    assert await retrieval.read_all(["kb_small"], 100)
    assert await retrieval.beginnings(["doc_kb_0_a"], 2, 2)
    hits = await retrieval.search(bases, SAID, 10)
    assert await vectors.find_lacking(hits, model) < {hit.chunk.id for hit in hits}
    assert await vectors.progress(bases, model)
    assert await vectors.count_embedded_chunks(["doc_kb_0_a"], model)
    assert await word_runs(database).holds_run(bases, sequences_of(SAID, MODEL_TEXT_RUNS))


async def embed_some(database: Database, embedder: FakeEmbedder) -> None:
    """Give the first chunks of each base vectors."""
    vectors, model = SqlChunkVectors(database), await embedder.model()
    assert await vectors.find_missing() is None
    await vectors.discover(model)
    for _ in range(BASES):
        taken = (await vectors.take_unembedded(model, 8, LEASE)).texts
        await vectors.put(model, [(each, (await asked(embedder, each.text)).vector) for each in taken])
    if database.dialect == "postgresql":
        await database.write(lambda connection: connection.execute(text(MORE_VECTORS)))
        await database.write(lambda connection: connection.execute(text("ANALYZE")))


def flaws_of(plan: Plan) -> list[str]:
    """Return the steps that read all rows of a large table, or look for columns behind the bodies of documents."""
    needs_body = any(re.search(rf"\bdocument\.{column}\b", plan.statement) for column in BEHIND_BODY)
    return [
        step
        for step in plan.steps
        if (table := next((each for each in LARGE if re.search(rf"\b{each}\b", step)), None))
        and UNINDEXED not in step
        and (
            step.startswith(("SCAN", "Seq Scan"))
            or (table == "document" and needs_body and step.startswith("SEARCH") and "COVERING" not in step)
        )
    ]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_search_reads_what_it_finds_alone(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    with noted_queries() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database:
            await fill(database)
            await embed_some(database, embedder)
            sent.clear()
            await search_all_ways(database, embedder)
            searching = list(sent)
            plans = await database.read(lambda connection: plans_of(connection, searching))
    assert any(UNINDEXED in step for plan in plans for step in plan.steps), plans
    flaws = {plan.statement: flaws for plan in plans if (flaws := flaws_of(plan))}
    assert not flaws, "\n\n".join(f"{statement}\n{steps}" for statement, steps in flaws.items())
