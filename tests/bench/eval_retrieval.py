"""Retrieval quality and speed on real text: `make eval-retrieval`.

Chinese passages with questions are put into one base together with an English handbook, cut by our own chunker
under names that say nothing. A hit is a chunk of the passage that the question was written for. The corpora are
no part of the project: they are read from `../shared/corpora` or `BALLAST_CORPORA`; without them there is
nothing to measure. What search by meaning adds is measured with vectors that are kept between runs.
"""

import asyncio
import gzip
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from backend.foundation.sql.chosen import open_database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.documents.reader import LibraryDocumentReader
from backend.knowledge.ports.knowledge import Retrieval
from backend.knowledge.services.ingest_document import NewDocument
from backend.knowledge.services.knowledge_bases import Description
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.services.use_cases import KnowledgePorts, KnowledgeServices, build_knowledge
from backend.knowledge.sql.protected import SqlProtectedKnowledge
from backend.knowledge.sql.retrieval import SqlRetrieval
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.sql.vectors import SqlChunkVectors
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver
from backend.migrations.migrate import migrate
from tests.bench.eval_meaning import Rankings, Share, asked_questions, render
from tests.bench.kept_vectors import KeptVectors
from tests.fakes.clock import FakeClock
from tests.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("BALLAST_CORPORA") or ROOT.parent / "shared" / "corpora")
PASSAGES, HANDBOOK = CORPORA / "cmrc-zh.jsonl.gz", CORPORA / "handbook-en.jsonl.gz"
RESULTS = ROOT / "var" / "bench" / "eval_retrieval.json"

MIN_HIT_AT_1, MIN_MRR_AT_10 = 0.935, 0.96
DEPTH = 10
CALLER = Caller(user_id="evaluator", tenant="default", role=KeyRole.USER)


class Question(NamedTuple):
    """A question, and the name of the document that answers it."""

    text: str
    document_name: str


class Measured(NamedTuple):
    """The figures of one database."""

    database: str
    questions: int
    chunks: int
    hit_at_1: float
    mrr_at_10: float
    search_p50_ms: float
    search_p95_ms: float
    ingest_chunks_per_second: float
    embedded_chunks: int
    shares: list[Share]
    grid: list[Share]

    def figures(self) -> dict[str, Any]:
        """Return all figures by their names."""
        shares, grid = ([share._asdict() for share in part] for part in (self.shares, self.grid))
        return {**self._asdict(), "shares": shares, "grid": grid}

    @property
    def is_good(self) -> bool:
        """Whether both figures of quality reach their floor."""
        return self.hit_at_1 >= MIN_HIT_AT_1 and self.mrr_at_10 >= MIN_MRR_AT_10


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a gzipped file of JSON lines."""
    with gzip.open(path, "rb") as lines:
        yield from (orjson.loads(line) for line in lines)


def read_corpora() -> tuple[list[NewDocument], list[Question]]:
    """Return all documents, passages first, and all questions."""
    documents: list[NewDocument] = []
    questions: list[Question] = []
    for number, row in enumerate(read_lines(PASSAGES)):
        name = f"passage-{number:04}.txt"
        documents.append(NewDocument(name, "text/plain", row["context"].encode()))
        questions += [Question(question["q"], name) for question in row["questions"]]
    for number, row in enumerate(read_lines(HANDBOOK)):
        if row["text"].strip():
            documents.append(NewDocument(f"page-{number:04}.md", "text/markdown", row["text"].encode()))
    return documents, questions


@asynccontextmanager
async def knowledge_in(url: str) -> AsyncGenerator[tuple[KnowledgeServices, Retrieval]]:
    """Open an empty database with the use cases over it."""
    database, reader = open_database(url), LibraryDocumentReader()
    try:
        await migrate(database)
        retrieval, store = SqlRetrieval(database), SqlKnowledgeStore(database, FakeClock())
        ports = KnowledgePorts(store, retrieval, reader, FakeClock())
        descriptions = SafeDescriptions(SqlProtectedKnowledge(database), retrieval, LoggingDescriptionObserver())
        tidying = asyncio.create_task(store.caretaker.run(is_only_replica=True))
        yield build_knowledge(ports, descriptions, KnowledgeProgress(SqlChunkVectors(database), None)), retrieval
        tidying.cancel()
    finally:
        await reader.close()
        await database.close()


async def evaluate(name: str, url: str, documents: Sequence[NewDocument], questions: Sequence[Question]) -> Measured:
    """Put all documents into one base and ask all questions."""
    async with knowledge_in(url) as (knowledge, retrieval):
        description = Description(name="Evaluation", summary="", topics=(), routing_hint="", routing_keywords=())
        base_id = (await knowledge.bases.create(CALLER, description)).base.id
        started = time.perf_counter()
        put = [(await knowledge.ingest.put(CALLER, base_id, document))[0] for document in documents]
        ingest_seconds = time.perf_counter() - started
        chunks = sum(document.chunk_count for document in put)
        ranks: list[int] = []
        times_ms: list[float] = []
        for question in questions:
            started = time.perf_counter()
            hits = await retrieval.search([base_id], question.text, DEPTH)
            times_ms.append((time.perf_counter() - started) * 1000)
            names = [hit.document_name for hit in hits]
            ranks.append(names.index(question.document_name) + 1 if question.document_name in names else 0)
        rankings = Rankings(retrieval, base_id, KeptVectors())
        await rankings.read(asked_questions(questions))
    return Measured(
        database=name,
        questions=len(questions),
        chunks=chunks,
        hit_at_1=sum(rank == 1 for rank in ranks) / len(ranks),
        mrr_at_10=sum(1 / rank for rank in ranks if rank) / len(ranks),
        search_p50_ms=statistics.median(times_ms),
        search_p95_ms=statistics.quantiles(times_ms, n=20)[-1],
        ingest_chunks_per_second=chunks / ingest_seconds,
        embedded_chunks=len(rankings.hits),
        shares=list(rankings.shares()),
        grid=list(rankings.grid()),
    )


async def evaluate_both() -> list[Measured]:
    """Measure SQLite, then PostgreSQL."""
    documents, questions = read_corpora()
    with tempfile.TemporaryDirectory() as directory:
        sqlite = await evaluate("SQLite", f"sqlite+aiosqlite:///{directory}/eval.db", documents, questions)
    server = PostgresServer()
    server.start()
    try:
        postgres = await evaluate("PostgreSQL", server.url(server.new_database()), documents, questions)
    finally:
        server.close()
    return [sqlite, postgres]


def report(measured: Sequence[Measured]) -> str:
    """Render the figures as a table."""
    columns = {"questions": 10, "chunks": 8, "hit@1": 8, "MRR@10": 8, "p50 ms": 8, "p95 ms": 8, "chunks/s": 10}
    head = f"{'database':<12}" + "".join(name.rjust(width) for name, width in columns.items())
    rows = [
        f"{m.database:<12}{m.questions:>10}{m.chunks:>8}{m.hit_at_1:>8.4f}{m.mrr_at_10:>8.4f}"
        f"{m.search_p50_ms:>8.1f}{m.search_p95_ms:>8.1f}{m.ingest_chunks_per_second:>10.0f}"
        for m in measured
    ]
    for m in measured:
        rows.append(f"\n{m.database}: {m.embedded_chunks} of {m.chunks} chunks have a vector")
        rows.append(render(m.database, [*m.shares, *m.grid]))
    return "\n".join([head, *rows])


def main() -> int:
    """Measure, print, keep the figures; 1 when a floor is not reached."""
    if not (PASSAGES.exists() and HANDBOOK.exists()):
        sys.stdout.write(f"eval-retrieval: no corpora in {CORPORA}; nothing was measured (set BALLAST_CORPORA).\n")
        return 0
    measured = asyncio.run(evaluate_both())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    figures = {"at": datetime.now(UTC).isoformat(), "measured": [m.figures() for m in measured]}
    RESULTS.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    is_good = all(m.is_good for m in measured)
    verdict = "reached" if is_good else "NOT reached"
    sys.stdout.write(f"{report(measured)}\nfloors hit@1 {MIN_HIT_AT_1}, MRR@10 {MIN_MRR_AT_10}: {verdict}\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
