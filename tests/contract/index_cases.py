"""Documents, and the index that follows them, for the contract of search indexes."""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
from sqlalchemy import Connection, delete, select, text, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.search.domain.chunks import ALL_NUMBERS, Chunk, Range, join_headings
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.engine import ChunkEngine
from backend.search.ports.index import SearchIndex, Steps
from backend.search.services.engine_index import EngineIndex
from backend.search.sql import tables
from backend.search.sql.engine_log import SqlEngineLog
from backend.search.sql.index import SqlSearchIndex
from backend.search.sql.segment_rows import SegmentRows
from backend.search.sql.segments import pack_segment
from shared.errors import Unavailable
from tests.contract.knowledge_cases import indexed, make_base, make_document
from tests.fakes.chunk_engine import SeenEngine
from tests.fakes.clock import FakeClock
from tests.fakes.frail_database import FrailDatabase
from tests.fakes.search_index import Changes, FakeSearchIndex
from tests.fakes.store_knowledge import FakeKnowledge

FULL_DISK = (
    """
    CREATE OR REPLACE FUNCTION refuse_page() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$
    """,
    "CREATE TRIGGER full_disk BEFORE INSERT ON index_page FOR EACH ROW EXECUTE FUNCTION refuse_page()",
)


class Room(ABC):
    """Documents, and the index that follows them."""

    index: SearchIndex[Any]
    documents: KnowledgeStore

    @abstractmethod
    async def open(self, base_id: str) -> None: ...

    @abstractmethod
    async def put(self, name: str, texts: Sequence[str], base_id: str = "kb_a", *, tells: bool = True) -> None:
        """Store a document and its chunks; unless it `tells`, the process ends before the index hears of it."""

    @abstractmethod
    async def delete(self, name: str) -> None: ...

    @abstractmethod
    async def delete_base(self) -> None: ...

    @abstractmethod
    async def run(self, steps: Steps[Any]) -> None: ...

    @abstractmethod
    def start_anew(self) -> None:
        """Go on with the index of another process."""

    @abstractmethod
    def die_behind(self, writes: int) -> None:
        """Go on with a process that is killed at the write behind so many; what it began is undone."""

    @abstractmethod
    async def sweep(self) -> None:
        """Bring in order what ended processes have left, when their leases are over."""

    @abstractmethod
    async def age(self) -> None:
        """Let an earlier release have written the index of the base kb_a, where it would have written another one."""

    @abstractmethod
    async def damage(self, damage: str) -> None:
        """Lose the index and keep the documents, or spoil it so that it finds nothing."""

    async def found(self, query: str, base_ids: Sequence[str] = ("kb_a",)) -> list[str]:
        return [hit.chunk.text for hit in await self.index.search(base_ids, query, 10)]


class BuiltIn(Room):
    """The index in the database of the documents."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FakeClock()
        self.start_anew()

    async def open(self, base_id: str) -> None:
        await self.documents.create_base(make_base(base_id), "ann")

    async def put(self, name: str, texts: Sequence[str], base_id: str = "kb_a", *, tells: bool = True) -> None:
        document, body, chunks = make_document(name, texts, base_id=base_id)
        await self.documents.put_document(document, body, indexed(chunks))

    async def delete(self, name: str) -> None:
        await self.documents.delete_document("kb_a", name)

    async def delete_base(self) -> None:
        await self.documents.delete_base("kb_a")

    async def run(self, steps: Steps[Any]) -> None:
        await run_in_short_transactions(self.database, steps)

    async def damage(self, damage: str) -> None:
        changes = {
            "lost": (delete(tables.index_page), delete(tables.index_segment)),
            "in parts": (
                delete(tables.index_segment).where(tables.index_segment.c.first_number == 0),
                delete(tables.index_page).where(tables.index_page.c.id < 2 << tables.PAGE_BITS),
            ),
            "spoilt": (update(tables.index_page).values(postings=bytes(12)),),
        }
        for change in changes[damage]:
            await self.database.write(lambda connection, change=change: connection.execute(change))

    def start_anew(self) -> None:
        self.start_over(self.database)

    def die_behind(self, writes: int) -> None:
        # It is all of a database that documents and indexes ask of one.
        self.start_over(cast(Database, FrailDatabase(self.database, writes)))

    def start_over(self, database: Database) -> None:
        self.index = SqlSearchIndex(database, self.clock)
        self.documents = SqlKnowledgeStore(database, self.clock, self.index)

    async def sweep(self) -> None:
        self.clock.advance(120)
        await cast(SqlKnowledgeStore, self.documents).maintenance.sweep(is_only_replica=True)
        await self.index.tidy()

    async def age(self) -> None:
        await self.database.write(forget_further_tokens)

    @asynccontextmanager
    async def full_disk(self) -> AsyncGenerator[None]:
        """Let the database write no more pages of the index while the block runs."""
        is_sqlite = self.database.dialect == "sqlite"
        filling = ("PRAGMA max_page_count = 1",) if is_sqlite else FULL_DISK
        freeing = "PRAGMA max_page_count = 1000000" if is_sqlite else "DROP TRIGGER full_disk ON index_page"
        for each in filling:
            await self._run(each)
        yield
        await self._run(freeing)

    async def _run(self, statement: str) -> None:
        await self.database.write(lambda connection: connection.execute(text(statement)).close())


class OfItsOwn(Room):
    """An engine that is no database: what it has to do is written down with the documents."""

    def __init__(self) -> None:
        self.documents = self._knowledge = FakeKnowledge()
        self._written: Changes = []
        self._held: dict[str, dict[int, Chunk]] = {}
        self._numbers: dict[str, Range] = {}
        self._writes_left = math.inf
        self.start_anew()

    async def open(self, base_id: str) -> None:
        await self._knowledge.create_base(make_base(base_id), "ann")
        self._engine.open(self._written, base_id)

    async def put(self, name: str, texts: Sequence[str], base_id: str = "kb_a", *, tells: bool = True) -> None:
        self._write_or_die()
        document, body, chunks = make_document(name, texts, base_id=base_id)
        prepared = await self._engine.prepare(chunks)
        await self._knowledge.put_document(document, body, indexed(chunks))
        first = max((numbers.end_number for numbers in self._numbers.values()), default=0)
        prepared.put(self._written, base_id, first)
        if name in self._numbers:
            self._write(self._engine.remove(base_id, self._numbers[name]))
        self._numbers[name] = Range(first, first + len(chunks))
        if tells:
            self._write_or_die()
            self._engine.note_change(base_id)

    async def delete(self, name: str) -> None:
        self._write_or_die()
        await self._knowledge.delete_document("kb_a", name)
        await self.run(self._engine.remove("kb_a", self._numbers[name]))

    async def delete_base(self) -> None:
        await self._knowledge.delete_base("kb_a")
        await self.run(self._engine.drop("kb_a"))

    async def run(self, steps: Steps[Changes]) -> None:
        self._write(steps)
        self._write_or_die()
        self._engine.note_change("kb_a")

    async def sweep(self) -> None:
        await self._engine.sweep(is_only_replica=True)

    async def age(self) -> None:
        """Leave it: what it holds has no form of its own."""

    def die_behind(self, writes: int) -> None:
        self.start_anew()
        self._writes_left = writes

    def _write_or_die(self) -> None:
        if not self._writes_left:
            raise Unavailable("The process is dead.")
        self._writes_left -= 1

    async def damage(self, damage: str) -> None:
        for held in self._held.values():
            held.clear()

    def start_anew(self) -> None:
        self._writes_left = math.inf
        self._engine = self.index = FakeSearchIndex(self._knowledge, self._written, self._held)

    def _write(self, steps: Steps[Changes]) -> None:
        next(steps)
        try:
            while True:
                steps.send(self._written)
        except StopIteration:
            return


class BesideEngine(BuiltIn):
    """The index in the database, and an engine that was told of each change, unless the process ended before."""

    def __init__(self, database: Database, engine: ChunkEngine) -> None:
        self.engine = engine
        self.seen = SeenEngine()
        super().__init__(database)

    async def put(self, name: str, texts: Sequence[str], base_id: str = "kb_a", *, tells: bool = True) -> None:
        await super().put(name, texts, base_id, tells=tells)
        if tells:
            await self.index.tidy()

    async def delete(self, name: str) -> None:
        await super().delete(name)
        await self.index.tidy()

    async def delete_base(self) -> None:
        await super().delete_base()
        await self.index.tidy()

    async def run(self, steps: Steps[Any]) -> None:
        await super().run(steps)
        await self.index.tidy()

    async def damage(self, damage: str) -> None:
        await super().damage(damage)
        await self.engine.replace("kb_a", Range(0, 1), [])

    async def age(self) -> None:
        await super().age()
        await self.engine.replace("kb_a", ALL_NUMBERS, [])

    def start_over(self, database: Database) -> None:
        log = SqlEngineLog(database, self.clock, 0)
        self.index = EngineIndex(SqlSearchIndex(database, self.clock), self.engine, log, self.seen)
        self.documents = SqlKnowledgeStore(database, self.clock, self.index)


def forget_further_tokens(connection: Connection) -> None:
    """Write the segments of a base as the release before does, which knows of no further tokens."""
    numbers = select(tables.chunk.c.number, tables.chunk.c.heading_path, tables.chunk.c.text)
    texts = {row[0]: join_headings(orjson.loads(row[1]), row[2]) for row in connection.execute(numbers)}
    first, end = min(texts), max(texts) + 1
    packed = pack_segment([tokenize(texts.get(number, "")) for number in range(first, end)])
    for table in ("index_page", "index_segment", "index_gone"):
        connection.execute(text(f"DELETE FROM {table}"))
    SegmentRows(FakeClock()).add(connection, "kb_a", first, packed, is_visible=True)
    connection.execute(text("UPDATE index_segment SET tokens_version = 1"))
