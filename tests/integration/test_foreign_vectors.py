"""A base that a caller may not read changes no byte of what their searches answer, by words or by meaning."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from backend.embeddings.domain import TextKind
from backend.embeddings.ports import MeaningPorts
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.foundation.http.services import install_services
from backend.groups.services import GroupNames
from backend.groups.sql.store import SqlGroupStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.wiring import KnowledgeTerms, build_knowledge
from backend.search.sql.vectors import SqlChunkVectors
from backend.search.wiring import build_search
from shared.models.safe_summary import RestrictedGrade
from tests.contract.knowledge_cases import make_base, put
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.meaning import FakeEmbedder, FakeQuestions, FakeReranker

OWN = ["the river rises in spring", "salmon swim up the river", "reimbursement of hotels", "报销需要发票", "parking"]
QUERIES = ("salmon in the river", "报销", "what will be paid back ?", "nothing of the kind")
LEASE = timedelta(minutes=1)


@dataclass
class World:
    """A database with the base `kb_a`, which ada reads through HTTP, and what may come beside it."""

    store: KnowledgeStore
    vectors: SqlChunkVectors
    embedder: FakeEmbedder
    client: httpx2.AsyncClient

    async def add(self, base_id: str, owner: str, texts: Sequence[str]) -> None:
        """Make a base whose chunks all have vectors."""
        await self.store.create_base(make_base(base_id, tenant="default"), owner)
        await put(self.store, "a.txt", texts, base_id=base_id)
        model = await self.embedder.model()
        await self.vectors.discover(model)
        while (taken := await self.vectors.take_unembedded(model, 64, LEASE)).texts or taken.reused:
            made = await self.embedder.embed([text.text for text in taken.texts], TextKind.PASSAGE)
            await self.vectors.put(model, list(zip(taken.texts, made, strict=True)))

    async def answers(self) -> list[bytes]:
        """Return the bodies of ada's searches."""
        path = "/v1/knowledge_bases/kb_a/search"
        return [(await self.client.post(path, json={"query": query})).content for query in QUERIES]


@pytest.fixture(params=first_of("sqlite", "postgresql"))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        embedder = FakeEmbedder(synonyms={"paid back": "reimbursement", "报销": "reimbursement"})
        reranker = FakeReranker()
        reranker.is_away = True
        reader = LibraryDocumentReader()
        search = build_search(database, FakeClock(), MeaningPorts(embedder, FakeQuestions(embedder), reranker))
        built = build_knowledge(
            database,
            FakeClock(),
            (),
            search,
            reader,
            KnowledgeTerms(RestrictedGrade.OPEN, False, GroupNames(SqlGroupStore(database))),
        )
        house = FakeHouse()
        app = house.app()
        install_services(app, house.options(), *house.services(), *built.part.services)
        async with client_of(app, await house.key("ada")) as client:
            made = World(built.store, SqlChunkVectors(database), embedder, client)
            await made.add("kb_a", "ada", OWN)
            yield made
        await reader.close()


async def test_a_foreign_base_changes_no_byte_of_a_search(world: World) -> None:
    before = await world.answers()
    await world.add("kb_b", "eve", [*OWN, "river " * 30, *(f"reimbursement {number}" for number in range(120))])
    assert await world.answers() == before
    assert b"reimbursement of hotels" in before[2]
    assert all(b'"score"' in answer for answer in before)
