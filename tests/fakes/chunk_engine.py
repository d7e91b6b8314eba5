"""A search engine in memory, beside a database."""

from collections import Counter
from collections.abc import Mapping, Sequence

from backend.search.domain.bm25 import length_norm
from backend.search.domain.chunks import Allowed, Found, Range
from backend.search.ports.engine import EngineChunk
from shared.errors import Unavailable


class FakeChunkEngine:
    """Implements `backend.search.ports.engine.ChunkEngine`; while it `is_away` every call fails."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], EngineChunk] = {}
        self.is_away = False
        self.calls = 0

    async def replace(self, base_id: str, numbers: Range, chunks: Sequence[EngineChunk]) -> None:
        self._call()
        for key in [key for key in self.held if key[0] == base_id and numbers[0] <= key[1] < numbers[1]]:
            del self.held[key]
        self.held |= {(base_id, chunk.number): chunk for chunk in chunks}

    async def count(self, base_ids: Sequence[str], tokens: Sequence[str] = ()) -> int:
        self._call()
        return sum(not tokens or any(map(chunk.times.get, tokens)) for _, chunk in self._of(base_ids))

    async def find(
        self,
        base_ids: Sequence[str],
        weights: Mapping[str, float],
        limit: int,
        allowed: Allowed,
    ) -> Sequence[Found]:
        self._call()
        fixed, by_length = length_norm(100.0)
        found: list[Found] = []
        for (base_id, number), chunk in self._of(base_ids):
            norm = fixed + by_length * chunk.length
            score = sum(
                weight * times / (times + norm)
                for token, weight in weights.items()
                if (times := chunk.times.get(token, 0))
            )
            is_allowed = allowed is None or any(one[0] <= number < one[1] for one in allowed.get(base_id, ()))
            if score and is_allowed:
                found.append(Found(base_id, number, score))
        return sorted(found, key=lambda hit: -hit.score)[:limit]

    def _of(self, base_ids: Sequence[str]) -> list[tuple[tuple[str, int], EngineChunk]]:
        return [(key, chunk) for key, chunk in self.held.items() if key[0] in base_ids]

    def _call(self) -> None:
        self.calls += 1
        if self.is_away:
            raise Unavailable("the engine is away")


class SeenEngine:
    """An `EngineObserver` that keeps what it was told."""

    def __init__(self) -> None:
        self.outcomes = Counter[str]()
        self.incomplete: list[tuple[str, int, int]] = []
        self.failures: list[str] = []

    def note_search(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    def note_incomplete(self, base_id: str, held: int, chunks: int) -> None:
        self.incomplete.append((base_id, held, chunks))

    def note_failure(self, reason: str) -> None:
        self.failures.append(reason)
