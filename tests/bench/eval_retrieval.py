"""Retrieval quality and speed on real text: `make eval-retrieval`.

Chinese passages with questions are put into one base together with an English handbook, cut by our own chunker
under names that say nothing; the project's own passages into bases beside it. A hit is a chunk of the passage that the
question was written for. Searches by words and by meaning go through the databases, as the backend's do, with vectors
of the local embedder that are kept between runs. Without the corpora there is nothing to measure.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from backend.extraction.formats.reader import LibraryDocumentReader
from backend.foundation.sql.chosen import open_database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.services.knowledge_bases import Description, KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import IngestDocument, NewDocument
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver
from backend.migrations.migrate import migrate
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.vectors import SqlChunkVectors
from shared.models.safe_summary import RestrictedGrade
from tests.bench.eval_bars import Judgement, judged
from tests.bench.eval_coverage import BASE, coverage_shares, judged_coverage
from tests.bench.eval_meaning import (
    DEPTH,
    Searched,
    Share,
    embed_texts,
    found_in,
    grid_of,
    rank_of,
    render,
    shares_of,
    store_vectors,
)
from tests.bench.eval_sets import (
    CHOSEN_ON,
    CORPORA,
    HANDBOOK,
    PASSAGES,
    ROOT,
    Material,
    Question,
    corpora_sets,
    read_corpora,
    read_own,
)
from tests.bench.kept_vectors import KeptVectors
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store, word_runs
from tests.servers.postgres import PostgresServer

RESULTS = ROOT / "var" / "bench" / "eval_retrieval.json"
EMBED_SECONDS = float(os.environ.get("BALLAST_EVAL_EMBED_SECONDS", "inf"))
"""How long a run may embed; chunks without a vector are found by their words alone."""

MIN_HIT_AT_1, MIN_MRR_AT_10 = 0.935, 0.96
CALLER = Caller(user_id="evaluator", tenant="default", role=KeyRole.USER)
_ALL_TOKENS = 10**9


class WordFigures(NamedTuple):
    """What a search by words finds of all questions of the corpora, and how fast."""

    questions: int
    hit_at_1: float
    mrr_at_10: float
    search_p50_ms: float
    search_p95_ms: float


class Measured(NamedTuple):
    """The figures of one database."""

    database: str
    words: WordFigures
    chunks: int
    ingest_chunks_per_second: float
    embedded_chunks: int
    shares: list[Share]
    coverage: list[Share]
    grid: list[Share]

    def figures(self) -> dict[str, Any]:
        """Return all figures by their names."""
        parts = {"shares": self.shares, "coverage": self.coverage, "grid": self.grid}
        shares = {name: [share._asdict() for share in part] for name, part in parts.items()}
        return {**self._asdict(), "words": self.words._asdict(), **shares}

    def judgements(self) -> list[Judgement]:
        """Judge all bars."""
        is_good = self.words.hit_at_1 >= MIN_HIT_AT_1 and self.words.mrr_at_10 >= MIN_MRR_AT_10
        line = (
            f"{self.database:<12}all Chinese questions by words: hit@1 {self.words.hit_at_1:.4f}, at least "
            f"{MIN_HIT_AT_1}, MRR@10 {self.words.mrr_at_10:.4f}, at least {MIN_MRR_AT_10}: "
            f"{'reached' if is_good else 'NOT reached'}"
        )
        has_all_vectors = self.embedded_chunks == self.chunks
        return [
            Judgement(line, is_good),
            *judged(self.database, self.shares, has_all_vectors=has_all_vectors),
            *judged_coverage(self.database, self.coverage),
        ]


class Opened(NamedTuple):
    """The use cases over an empty database, and what searches it."""

    bases: KnowledgeCatalogue
    ingest: IngestDocument
    retrieval: SqlRetrieval
    vectors: SqlChunkVectors


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Opened]:
    """Open an empty database with the use cases over it."""
    database, reader = open_database(url), LibraryDocumentReader()
    try:
        await migrate(database)
        retrieval, store, vectors = (
            SqlRetrieval(database),
            knowledge_store(database, FakeClock()),
            SqlChunkVectors(database),
        )
        descriptions = SafeDescriptions(word_runs(database), retrieval, LoggingDescriptionObserver())
        tidying = asyncio.create_task(store.maintenance.run(is_only_replica=True))
        yield Opened(
            KnowledgeCatalogue(store, descriptions, FakeClock(), RestrictedGrade.OPEN),
            IngestDocument(store, reader, FakeClock()),
            retrieval,
            vectors,
        )
        tidying.cancel()
    finally:
        await reader.close()
        await database.close()


async def put_all(over: Opened, key: str, documents: Sequence[NewDocument]) -> tuple[str, int]:
    """Make a base of documents; return its id and how many chunks it has."""
    description = Description(name=key, summary="", topics=(), routing_hint="", routing_keywords=())
    base_id = (await over.bases.create(CALLER, description)).base.id
    put = [(await over.ingest.put(CALLER, base_id, document))[0] for document in documents]
    return base_id, sum(document.chunk_count for document in put)


async def measure_words(retrieval: SqlRetrieval, base_id: str, questions: Sequence[Question]) -> WordFigures:
    """Ask all questions by words."""
    ranks: list[int] = []
    times_ms: list[float] = []
    for question in questions:
        started = time.perf_counter()
        hits = await retrieval.search([base_id], question.text, DEPTH)
        times_ms.append((time.perf_counter() - started) * 1000)
        ranks.append(rank_of(question, hits))
    return WordFigures(
        questions=len(questions),
        hit_at_1=sum(rank == 1 for rank in ranks) / len(ranks),
        mrr_at_10=sum(1 / rank for rank in ranks if rank) / len(ranks),
        search_p50_ms=statistics.median(times_ms),
        search_p95_ms=statistics.quantiles(times_ms, n=20)[-1],
    )


async def texts_in_order(retrieval: SqlRetrieval, base_ids: Sequence[str], material: Material) -> list[str]:
    """Return what all chunks are embedded by, those first that answer a question."""
    answering = {question.document_name for asked in material.sets for question in asked.questions}
    everything = [hit for base_id in base_ids for hit in await retrieval.read_all([base_id], _ALL_TOKENS) or ()]
    dice = random.Random("distractors")
    wanted = sorted(everything, key=lambda hit: (hit.document_name not in answering, dice.random()))
    return [hit.chunk.join_headings for hit in wanted]


async def evaluate(name: str, url: str, material: Material, questions: Sequence[Question]) -> Measured:
    """Put all documents into bases and ask all questions."""
    async with opened(url) as over:
        retrieval, vectors = over.retrieval, over.vectors
        started = time.perf_counter()
        put = {key: await put_all(over, key, documents) for key, documents in material.documents.items()}
        ingest_seconds = time.perf_counter() - started
        base_ids = {key: base_id for key, (base_id, _) in put.items()}
        chunks = sum(count for _, count in put.values())
        words = await measure_words(retrieval, base_ids["corpora"], questions)
        kept = KeptVectors()
        texts = await texts_in_order(retrieval, list(base_ids.values()), material)
        embed_texts(kept, material.sets, texts, EMBED_SECONDS)
        await store_vectors(vectors, kept)
        progress = await vectors.progress(list(base_ids.values()), await kept.model())
        searched = Searched(retrieval, vectors, base_ids)
        found = {asked.name: await found_in(searched, kept, asked) for asked in material.sets}
        coverage = await coverage_shares(searched, kept, material.sets)
    return Measured(
        database=name,
        words=words,
        chunks=chunks,
        ingest_chunks_per_second=chunks / ingest_seconds,
        embedded_chunks=sum(one.embedded_chunks for one in progress.values()),
        shares=[share for key, some in found.items() for share in shares_of(key, some)],
        coverage=coverage,
        grid=list(grid_of(found[CHOSEN_ON])),
    )


async def evaluate_both() -> list[Measured]:
    """Measure SQLite, then PostgreSQL."""
    documents, questions = read_corpora()
    own = read_own()
    material = Material({"corpora": documents, **own.documents}, [*corpora_sets(questions), *own.sets])
    with tempfile.TemporaryDirectory() as directory:
        sqlite = await evaluate("SQLite", f"sqlite+aiosqlite:///{directory}/eval.db", material, questions)
    server = PostgresServer()
    server.start()
    try:
        postgres = await evaluate("PostgreSQL", server.url(server.new_database()), material, questions)
    finally:
        server.close()
    return [sqlite, postgres]


async def evaluate_coverage() -> list[Share]:
    """Measure on SQLite alone what is found of our own passages while they are being embedded."""
    own, kept = read_own(), KeptVectors()
    with tempfile.TemporaryDirectory() as directory:
        async with opened(f"sqlite+aiosqlite:///{directory}/eval.db") as over:
            retrieval, vectors = over.retrieval, over.vectors
            base_id, _ = await put_all(over, BASE, own.documents[BASE])
            embed_texts(kept, own.sets, await texts_in_order(retrieval, [base_id], own), EMBED_SECONDS)
            await store_vectors(vectors, kept)
            return await coverage_shares(Searched(retrieval, vectors, {BASE: base_id}), kept, own.sets)


def report(measured: Sequence[Measured]) -> str:
    """Render the figures as tables, and the judgements."""
    columns = {"questions": 10, "chunks": 8, "hit@1": 8, "MRR@10": 8, "p50 ms": 8, "p95 ms": 8, "chunks/s": 10}
    head = f"{'by words':<12}" + "".join(name.rjust(width) for name, width in columns.items())
    rows = [
        f"{m.database:<12}{m.words.questions:>10}{m.chunks:>8}{m.words.hit_at_1:>8.4f}{m.words.mrr_at_10:>8.4f}"
        f"{m.words.search_p50_ms:>8.1f}{m.words.search_p95_ms:>8.1f}{m.ingest_chunks_per_second:>10.0f}"
        for m in measured
    ]
    for m in measured:
        rows.append(f"\n{m.database}: {m.embedded_chunks} of {m.chunks} chunks have a vector")
        rows.append(render(m.database, [*m.shares, *m.coverage, *m.grid]))
    rows.append("")
    rows += [one.line for m in measured for one in m.judgements()]
    return "\n".join([head, *rows])


def main() -> int:
    """Measure, print, keep the figures; 1 when a bar is not reached."""
    if sys.argv[1:] == ["--only", "coverage"]:
        shares = asyncio.run(evaluate_coverage())
        judgements = list(judged_coverage("SQLite", shares))
        sys.stdout.write("\n".join([render("SQLite", shares), *(one.line for one in judgements)]) + "\n")
        return 0 if all(one.is_reached for one in judgements) else 1
    if not (PASSAGES.exists() and HANDBOOK.exists()):
        sys.stdout.write(f"eval-retrieval: no corpora in {CORPORA}; nothing was measured (set BALLAST_CORPORA).\n")
        return 0
    measured = asyncio.run(evaluate_both())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    figures = {"at": datetime.now(UTC).isoformat(), "measured": [m.figures() for m in measured]}
    RESULTS.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    sys.stdout.write(f"{report(measured)}\n")
    return 0 if all(one.is_reached for m in measured for one in m.judgements()) else 1


if __name__ == "__main__":
    sys.exit(main())
