"""Documents, and the index that follows them, for the contract of search indexes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.search.domain.chunks import Chunk, Range
from backend.search.ports.engine import ChunkEngine
from backend.search.ports.index import SearchIndex, Steps
from backend.search.services.engine_index import EngineIndex
from backend.search.sql import tables
from backend.search.sql.engine_log import SqlEngineLog
from backend.search.sql.index import SqlSearchIndex
from tests.contract.knowledge_cases import indexed, make_base, make_document
from tests.fakes.chunk_engine import SeenEngine
from tests.fakes.clock import FakeClock
from tests.fakes.search_index import Changes, FakeSearchIndex
from tests.fakes.store_knowledge import FakeKnowledge


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
    async def damage(self, damage: str) -> None:
        """Lose the index and keep the documents, or spoil it so that it finds nothing."""

    async def found(self, query: str, base_ids: Sequence[str] = ("kb_a",)) -> list[str]:
        return [hit.chunk.text for hit in await self.index.search(base_ids, query, 10)]


class BuiltIn(Room):
    """The index in the database of the documents."""

    def __init__(self, database: Database) -> None:
        self.database = database
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
        self.index = SqlSearchIndex(self.database, FakeClock())
        self.documents = SqlKnowledgeStore(self.database, FakeClock(), self.index)


class OfItsOwn(Room):
    """An engine that is no database: what it has to do is written down with the documents."""

    def __init__(self) -> None:
        self.documents = self._knowledge = FakeKnowledge()
        self._written: Changes = []
        self._held: dict[str, dict[int, Chunk]] = {}
        self._numbers: dict[str, Range] = {}
        self._engine = self.index = FakeSearchIndex(self._knowledge, self._written, self._held)

    async def open(self, base_id: str) -> None:
        await self._knowledge.create_base(make_base(base_id), "ann")
        self._engine.open(self._written, base_id)

    async def put(self, name: str, texts: Sequence[str], base_id: str = "kb_a", *, tells: bool = True) -> None:
        document, body, chunks = make_document(name, texts, base_id=base_id)
        prepared = await self._engine.prepare(chunks)
        await self._knowledge.put_document(document, body, indexed(chunks))
        first = max((numbers.end_number for numbers in self._numbers.values()), default=0)
        prepared.put(self._written, base_id, first)
        if name in self._numbers:
            self._write(self._engine.remove(base_id, self._numbers[name]))
        self._numbers[name] = Range(first, first + len(chunks))
        if tells:
            self._engine.note_change(base_id)

    async def delete(self, name: str) -> None:
        await self._knowledge.delete_document("kb_a", name)
        await self.run(self._engine.remove("kb_a", self._numbers[name]))

    async def delete_base(self) -> None:
        await self._knowledge.delete_base("kb_a")
        await self.run(self._engine.drop("kb_a"))

    async def run(self, steps: Steps[Changes]) -> None:
        self._write(steps)
        self._engine.note_change("kb_a")

    async def damage(self, damage: str) -> None:
        for held in self._held.values():
            held.clear()

    def start_anew(self) -> None:
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
        self.clock = FakeClock()
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

    def start_anew(self) -> None:
        log = SqlEngineLog(self.database, self.clock, 0)
        self.index = EngineIndex(SqlSearchIndex(self.database, self.clock), self.engine, log, self.seen)
        self.documents = SqlKnowledgeStore(self.database, self.clock, self.index)
