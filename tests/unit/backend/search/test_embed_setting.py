"""Whether a base is embedded, and how far: who may set it, and who is told."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from backend.embeddings.domain import TextKind
from backend.embeddings.ports import MeaningPorts
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.foundation.http.services import install_services
from backend.groups.services import GroupNames
from backend.groups.sql.store import SqlGroupStore
from backend.knowledge.wiring import KnowledgeTerms, build_knowledge
from backend.search.services.embedding_worker import LEASE, TEXTS_AT_ONCE
from backend.search.sql.vectors import SqlChunkVectors
from backend.search.wiring import build_search
from shared.models.safe_summary import RestrictedGrade
from tests.contract.store_cases import migrated
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.meaning import FakeEmbedder, FakeQuestions, FakeReranker

BASE = "/v1/knowledge_bases"
Body = dict[str, Any]


@dataclass
class ServedApi:
    """The routes of knowledge over SQLite; `embed` does what the worker does, once."""

    house: FakeHouse
    app: Any
    vectors: SqlChunkVectors
    embedder: FakeEmbedder
    ann: httpx2.AsyncClient
    base_id: str = ""

    async def embed(self) -> int:
        """Give all chunks their vectors; return how many texts that took."""
        model, before = await self.embedder.model(), len(self.embedder.texts)
        await self.vectors.discover(model)
        while (taken := await self.vectors.take_unembedded(model, TEXTS_AT_ONCE, LEASE)).texts:
            made = await self.embedder.embed([text.text for text in taken.texts], TextKind.PASSAGE)
            await self.vectors.put(model, list(zip(taken.texts, made, strict=True)))
        await self.vectors.sweep(model)
        return len(self.embedder.texts) - before

    async def shown(self, client: httpx2.AsyncClient) -> Body:
        return (await client.get(f"{BASE}/{self.base_id}")).json()

    async def found(self) -> list[str]:
        """Return the documents that a question finds in other words than theirs."""
        answer = await self.ann.post(f"{BASE}/{self.base_id}/search", json={"query": "报销"})
        return [hit["document"] for hit in answer.json()["data"]]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ServedApi]:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        embedder, reranker = FakeEmbedder(synonyms={"报销": "reimbursement"}), FakeReranker()
        reranker.is_away = True
        meaning = MeaningPorts(embedder, FakeQuestions(embedder), reranker)
        reader, house = LibraryDocumentReader(), FakeHouse()
        search = build_search(database, FakeClock(), meaning)
        built = build_knowledge(
            database,
            FakeClock(),
            (),
            search,
            reader,
            KnowledgeTerms(RestrictedGrade.OPEN, False, GroupNames(SqlGroupStore(database))),
        )
        app = house.app()
        install_services(app, house.options(), *house.services(), *built.part.services)
        async with client_of(app, await house.key("ann")) as ann:
            made = ServedApi(house, app, SqlChunkVectors(database), embedder, ann)
            made.base_id = (await ann.post(BASE, json={"name": "Travel"})).json()["id"]
            put = await ann.put(f"{BASE}/{made.base_id}/documents/a.txt", content=b"reimbursement of hotels")
            assert put.status_code == 201
            yield made
        await reader.close()


async def test_progress_is_shown_alone_and_in_lists(api: ServedApi) -> None:
    before = await api.shown(api.ann)
    assert (before["embed"], before["embedded_chunks"], before["chunks"]) == (True, 0, 1)
    assert await api.found() == []
    assert await api.embed() == 1
    document = (await api.ann.get(f"{BASE}/{api.base_id}/documents")).json()["data"][0]
    assert (document["name"], document["embedded_chunks"], document["chunks"]) == ("a.txt", 1, 1)
    after = await api.shown(api.ann)
    assert (after["embedded_chunks"], after["chunks"]) == (1, 1)
    listed = (await api.ann.get(BASE)).json()["data"]
    assert [(each["embedded_chunks"], each["chunks"]) for each in listed] == [(1, 1)]
    assert await api.found() == ["a.txt"]


async def test_embedding_is_switched_off_and_on(api: ServedApi) -> None:
    await api.embed()
    off = (await api.ann.patch(f"{BASE}/{api.base_id}", json={"embed": False})).json()
    assert off["embed"] is False
    assert "embedded_chunks" not in off or off["embedded_chunks"] is None
    (document,) = (await api.ann.get(f"{BASE}/{api.base_id}/documents")).json()["data"]
    assert document["embedded_chunks"] is None
    assert await api.found() == []
    assert await api.embed() == 0
    on = (await api.ann.patch(f"{BASE}/{api.base_id}", json={"embed": True})).json()
    assert (on["embed"], on["embedded_chunks"], on["chunks"]) == (True, 0, 1), "its vectors have been deleted"
    assert await api.embed() == 1
    assert await api.found() == ["a.txt"]


async def test_a_base_that_is_made_without_embedding_is_never_read_by_the_embedder(api: ServedApi) -> None:
    base = (await api.ann.post(BASE, json={"name": "Secret", "embed": False})).json()
    assert base["embed"] is False
    await api.ann.put(f"{BASE}/{base['id']}/documents/b.txt", content=b"nobody reads this")
    await api.embed()
    assert "nobody reads this" not in api.embedder.texts


async def test_only_owners_change_it_and_restricted_members_see_nothing_of_it(api: ServedApi) -> None:
    for user, role in (("eve", "editor"), ("rob", "reader"), ("rita", "restricted_analyst")):
        set_member = await api.ann.put(f"{BASE}/{api.base_id}/members/{user}", json={"role": role})
        assert set_member.status_code == 201, set_member.text
    await api.embed()
    for user, status in (("eve", 403), ("rob", 403), ("rita", 403), ("nobody", 404)):
        async with client_of(api.app, await api.house.key(user)) as client:
            refused = await client.patch(f"{BASE}/{api.base_id}", json={"embed": False})
            assert refused.status_code == status, user
    for user, sees in (("eve", True), ("rob", True), ("rita", False)):
        async with client_of(api.app, await api.house.key(user)) as client:
            shown = await api.shown(client)
            assert {"embed", "embedded_chunks", "chunks"} & shown.keys() == (
                {"embed", "embedded_chunks", "chunks"} if sees else set()
            ), user
    assert (await api.shown(api.ann))["embed"] is True
    wrong = await api.ann.patch(f"{BASE}/{api.base_id}", json={"embed": "no"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "embed")
