"""A log of a search engine whose documents stand still, in memory."""

from collections.abc import Mapping, Sequence

from backend.search.domain.chunks import Chunk, ChunkHit, Found, Range
from backend.search.domain.filters import Filter
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.engine import BaseSize, CurrentBases, TakenChanges


class FakeEngineLog:
    """Implements `backend.search.ports.engine.EngineLog` for the base kb_a; `allowed` is what every filter allows."""

    def __init__(self, texts: Sequence[str], allowed: Mapping[str, Sequence[Range]]) -> None:
        self._texts = texts
        self._allowed = allowed
        self.noted: list[Range] = []
        self.is_behind = False

    def note(self, work: object, base_id: str, numbers: Range) -> None:
        self.noted.append(numbers)

    async def note_all(self, size: BaseSize) -> None:
        self.noted.append(Range(0, size.end_number))

    async def read_sizes(self, base_ids: Sequence[str] | None = None) -> Sequence[BaseSize]:
        return [] if self.noted else [BaseSize("kb_a", len(self._texts), len(self._texts))]

    async def read_current(self, base_ids: Sequence[str], filters: Filter | None) -> CurrentBases | None:
        tokens = sum(len(tokenize(text)) for text in self._texts)
        current = CurrentBases((("kb_a", 1),), len(self._texts), tokens, None if filters is None else self._allowed)
        return None if self.is_behind else current

    async def read_hits(self, found: Sequence[Found]) -> Sequence[ChunkHit]:
        return [self._hit(one.number) for one in found]

    async def take(self) -> TakenChanges | None:
        noted, self.noted = self.noted, []
        return TakenChanges("kb_a", (1,), tuple(noted)) if noted else None

    async def renew(self, taken: TakenChanges) -> None:
        return

    async def read_chunks(self, base_id: str, numbers: Range) -> Sequence[tuple[int, str]]:
        return list(enumerate(self._texts))[numbers.first_number : numbers.end_number]

    async def settle(self, taken: TakenChanges, *, is_told: bool) -> None:
        if not is_told:
            self.noted += taken.numbers

    def _hit(self, number: int) -> ChunkHit:
        chunk = Chunk(
            id=f"chunk_{number}",
            document_id="doc_a",
            ordinal=number,
            heading_path=(),
            text=self._texts[number],
            tokens=10,
        )
        return ChunkHit(knowledge_base_id="kb_a", document_id="doc_a", document_name="a", chunk=chunk, score=0.0)
