"""Stores of vectors, and what fills and asks them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from backend.embeddings.domain import EmbeddedQuery, TextKind
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.search.ports.vectors import ChunkVectors, TextWithoutVector
from tests.fakes.meaning import FakeEmbedder, FakeQuestions

LEASE = timedelta(minutes=1)


class VectorStores(NamedTuple):
    store: KnowledgeStore
    vectors: ChunkVectors
    attachments: AttachmentStore

    async def taken(self, embedder: FakeEmbedder, lease: timedelta = LEASE, limit: int = 64) -> list[TextWithoutVector]:
        """Take what waits; texts whose equals have vectors are given these meanwhile."""
        model = await embedder.model()
        await self.vectors.discover(model)
        while (found := await self.vectors.take_unembedded(model, limit, lease)).reused and not found.texts:
            continue
        return list(found.texts)

    async def embed(self, embedder: FakeEmbedder) -> None:
        """Embed all that waits."""
        while texts := await self.taken(embedder):
            found = await embedder.embed([text.text for text in texts], TextKind.PASSAGE)
            await self.vectors.put(await embedder.model(), list(zip(texts, found, strict=True)))

    async def found(self, embedder: FakeEmbedder, question: str, base_ids: Sequence[str] = ("kb_a",)) -> list[str]:
        hits = await self.vectors.nearest(base_ids, await asked(embedder, question), 10)
        return [hit.chunk.text for hit in hits]


async def asked(embedder: FakeEmbedder, question: str) -> EmbeddedQuery:
    query = await FakeQuestions(embedder).vector_of(question)
    assert query is not None
    return query
