"""A search index in memory that is no database: what changes it is a list of what is to be done."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from backend.search.domain.chunks import Chunk, ChunkHit, Range
from backend.search.domain.filters import Filter
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.index import IndexProgress, PreparedChunks, Steps
from tests.fakes.store_knowledge import FakeKnowledge

Changes = list[Callable[[], None]]


class FakeSearchIndex:
    """Implements `backend.search.ports.index.SearchIndex` beside documents.

    `written` is what was written down with the documents, `held` the chunks of the index by base and number; both
    outlive a process. To do again all that is written down, from its beginning, changes nothing.
    """

    def __init__(self, documents: FakeKnowledge, written: Changes, held: dict[str, dict[int, Chunk]]) -> None:
        self._documents = documents
        self._written = written
        self._held = held
        self._reached = 0

    def open(self, work: Changes, base_id: str) -> None:
        work.append(lambda: self._held.update({base_id: {}}))

    async def prepare(self, chunks: Sequence[Chunk]) -> PreparedChunks[Changes]:
        def put(work: Changes, base_id: str, first_number: int) -> None:
            work.append(lambda: self._held[base_id].update(enumerate(chunks, first_number)))

        return PreparedChunks(chunks, sum(len(tokenize(chunk.join_headings)) for chunk in chunks), put)

    def remove(self, base_id: str, numbers: Range) -> Steps[Changes]:
        for number in range(*numbers):
            work = yield
            work.append(lambda number=number: self._forget(base_id, number))

    def drop(self, base_id: str) -> Steps[Changes]:
        work = yield
        work.append(lambda: self._held.update({base_id: {}}))

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        found = await self._documents.search(base_ids, query, limit, filters)
        held = {chunk.id for base_id in base_ids for chunk in self._held.get(base_id, {}).values()}
        return tuple(hit for hit in found if hit.chunk.id in held)

    async def progress(self, base_ids: Sequence[str]) -> Mapping[str, IndexProgress]:
        there = [base_id for base_id in base_ids if self._documents.base(base_id) is not None]
        return {
            base_id: IndexProgress(len(self._held.get(base_id, {})), self._documents.chunk_count(base_id))
            for base_id in there
        }

    def note_change(self, base_id: str) -> None:
        self._apply()

    async def reindex(self) -> AsyncIterator[IndexProgress]:
        self._reached = 0
        self._apply()
        found = (await self.progress(self._documents.base_ids)).values()
        yield IndexProgress(sum(one.indexed_chunks for one in found), sum(one.chunks for one in found))

    async def sweep(self, *, is_only_replica: bool) -> None:
        self._apply()

    async def tidy(self, seconds: float = 0.0) -> None:
        self._apply()

    def _apply(self) -> None:
        for change in self._written[self._reached :]:
            change()
        self._reached = len(self._written)

    def _forget(self, base_id: str, number: int) -> None:
        self._held.get(base_id, {}).pop(number, None)
