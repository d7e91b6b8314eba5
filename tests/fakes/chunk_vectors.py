"""Vectors of chunks in memory, over the in-memory knowledge."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from operator import mul

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, Vector, vector_numbers
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter, matches
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.vectors import ChunkPlace, EmbeddingProgress, TakenTexts, TextWithoutVector
from tests.fakes.clock import FakeClock
from tests.fakes.store_knowledge import FakeKnowledge

_Key = tuple[str, int, str, str]


def _key(model: EmbeddingModel, base_id: str, digest: str) -> _Key:
    return (model.name, model.dimension, base_id, digest)


class FakeChunkVectors:
    """Implements `backend.search.ports.vectors.ChunkVectors`; vectors are kept by base and text."""

    def __init__(self, knowledge: FakeKnowledge, clock: FakeClock) -> None:
        self._knowledge = knowledge
        self._clock = clock
        self._vectors: dict[_Key, Vector | None] = {}
        self._taken: dict[tuple[str, str], datetime] = {}

    async def find_missing(self) -> str | None:
        return None

    async def discover(self, model: EmbeddingModel, base_id: str | None = None) -> int:
        return 0

    async def models_of(self, base_id: str) -> Sequence[EmbeddingModel]:
        there = {(name, dimension) for name, dimension, of_base, _ in self._vectors if of_base == base_id}
        return [EmbeddingModel(name=name, dimension=dimension) for name, dimension in sorted(there)]

    async def take_unembedded(self, model: EmbeddingModel, limit: int, lease: timedelta) -> TakenTexts:
        for base_id in self._embedded_bases():
            if texts := await self._free(model, base_id, limit):
                until = self._clock.now() + lease
                self._taken.update({(base_id, text.digest): until for text in texts})
                return TakenTexts(tuple(texts), 0)
        return TakenTexts((), 0)

    async def _free(self, model: EmbeddingModel, base_id: str, limit: int) -> list[TextWithoutVector]:
        free: dict[str, TextWithoutVector] = {}
        for hit in await self._hits([base_id]):
            digest = _digest(hit)
            until = self._taken.get((base_id, digest))
            if _key(model, base_id, digest) in self._vectors or (until is not None and until > self._clock.now()):
                continue
            if len(free) < limit or digest in free:
                place = ChunkPlace(0, base_id, hit.chunk.ordinal)
                places = free[digest].places if digest in free else ()
                free[digest] = TextWithoutVector(digest, hit.chunk.join_headings, (*places, place))
        return list(free.values())

    async def put(self, model: EmbeddingModel, vectors: Sequence[tuple[TextWithoutVector, Vector]]) -> int:
        return self._settle(model, vectors)

    async def refuse(self, model: EmbeddingModel, texts: Sequence[TextWithoutVector]) -> None:
        self._settle(model, [(text, None) for text in texts])

    async def give_back(self, texts: Sequence[TextWithoutVector]) -> None:
        for text in texts:
            self._free_places(text)

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        asked = vector_numbers(query.vector)
        found: list[ChunkHit] = []
        for hit in await self._hits([each for each in self._embedded_bases() if each in base_ids]):
            vector = self._vectors.get(_key(query.model, hit.knowledge_base_id, _digest(hit)))
            if vector is not None and (filters is None or matches(filters, hit.attributes)):
                found.append(hit.model_copy(update={"score": sum(map(mul, asked, vector_numbers(vector)))}))
        found.sort(key=lambda hit: (-round(hit.score, 6), hit.chunk.text, hit.document_name, hit.chunk.ordinal))
        return tuple(found[:limit])

    async def find_lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
        return frozenset(
            hit.chunk.id for hit in hits if self._vectors.get(_key(model, hit.knowledge_base_id, _digest(hit))) is None
        )

    async def progress(self, base_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, EmbeddingProgress]:
        found: dict[str, EmbeddingProgress] = {}
        for base_id in self._embedded_bases():
            if base_id in base_ids:
                hits = await self._hits([base_id])
                keys = [_key(model, base_id, _digest(hit)) for hit in hits]
                embedded = sum(self._vectors.get(key) is not None for key in keys)
                waiting = sum(key not in self._vectors for key in keys)
                tokens = sum(len(tokenize(hit.chunk.join_headings)) for hit in hits)
                found[base_id] = EmbeddingProgress(
                    embedded, len(keys), waiting, ceil(waiting * tokens / max(len(keys), 1))
                )
        return found

    async def count_embedded_chunks(self, document_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, int]:
        hits = [hit for hit in await self._hits(self._embedded_bases()) if hit.document_id in document_ids]
        has_vector = [hit for hit in hits if self._vectors.get(_key(model, hit.knowledge_base_id, _digest(hit)))]
        return Counter(hit.document_id for hit in has_vector)

    async def count_waiting(self, model: EmbeddingModel) -> int:
        hits = await self._hits(self._embedded_bases())
        return sum(_key(model, hit.knowledge_base_id, _digest(hit)) not in self._vectors for hit in hits)

    async def sweep(self, model: EmbeddingModel | None, *, keeps_reusable: bool = True) -> int:
        there = {(hit.knowledge_base_id, _digest(hit)) for hit in await self._hits(self._embedded_bases())}
        gone = [
            key
            for key in self._vectors
            if (key[2:] not in there and not (keeps_reusable and await self._is_waited_for(key)))
            or await self._is_replaced(key, model)
        ]
        for key in gone:
            del self._vectors[key]
        return len(gone)

    async def upkeep(self) -> None:
        pass

    async def _is_replaced(self, key: _Key, model: EmbeddingModel | None) -> bool:
        if model is None or key[:2] == (model.name, model.dimension):
            return False
        hits = await self._hits([key[2]])
        return all(_key(model, key[2], _digest(hit)) in self._vectors for hit in hits)

    async def _is_waited_for(self, key: _Key) -> bool:
        hits = await self._hits([key[2]]) if self._is_embedded(key[2]) else ()
        return any((*key[:3], _digest(hit)) not in self._vectors for hit in hits)

    def _settle(self, model: EmbeddingModel, vectors: Sequence[tuple[TextWithoutVector, Vector | None]]) -> int:
        for text, vector in vectors:
            if vector is not None and len(vector_numbers(vector)) != model.dimension:
                raise ValueError("a vector of the model must have as many numbers as its dimension")
            self._free_places(text)
            for place in text.places:
                self._vectors[_key(model, place.edition_id, text.digest)] = vector
        return sum(len(text.places) for text, _ in vectors)

    def _free_places(self, text: TextWithoutVector) -> None:
        for place in text.places:
            self._taken.pop((place.edition_id, text.digest), None)

    def _is_embedded(self, base_id: str) -> bool:
        return base_id in self._embedded_bases()

    def _embedded_bases(self) -> list[str]:
        bases = [self._knowledge.base(base_id) for base_id in self._knowledge.base_ids]
        return [base.id for base in bases if base is not None and base.embed]

    async def _hits(self, base_ids: Sequence[str]) -> Sequence[ChunkHit]:
        return await self._knowledge.read_all(base_ids, 10**9) or ()


def _digest(hit: ChunkHit) -> str:
    return sha256(hit.chunk.join_headings.encode()).hexdigest()
