"""A PostgreSQL that cannot hold vectors: search goes on by words, what is missing is said, and is made up for later."""

from collections.abc import AsyncIterator
from typing import Any, cast

import asyncpg
import pytest
from sqlalchemy import make_url

from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.migrations.migrate import migrate
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.vectors import SqlChunkVectors
from tests.contract.knowledge_cases import make_base, put
from tests.contract.vector_cases import VectorStores, asked
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_knowledge import FakeKnowledge
from tests.servers.postgres import PostgresServer

SCHEMA_ALONE = "GRANT ALL ON SCHEMA public TO plain"
CASES = {
    "no right to create it": (
        (SCHEMA_ALONE,),
        ("CREATE EXTENSION vector",),
        "CREATE EXTENSION vector as a user who may",
    ),
    "no pgvector on the server": (
        (SCHEMA_ALONE, "ALTER DATABASE {name} SET extension_control_path = '/nowhere'"),
        ("ALTER DATABASE {name} RESET extension_control_path", "CREATE EXTENSION vector"),
        "install pgvector",
    ),
    "an old pgvector": (
        (
            SCHEMA_ALONE,
            "CREATE EXTENSION vector",
            "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
        ),
        ("UPDATE pg_extension SET extversion = '0.8.5' WHERE extname = 'vector'",),
        "0.8 or newer; the database has 0.7.4",
    ),
}


class Place:
    """A database of a role without rights, and a session of the operator beside it."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self.name = server, server.new_database("template0")

    @property
    def url(self) -> str:
        return make_url(self._server.url(self.name)).set(username="plain").render_as_string()

    async def operate(self, *statements: str) -> None:
        """Run each statement in a session of its own, so that it meets the settings that the one before has made."""
        for statement in statements:
            connection: Any = await cast(Any, asyncpg).connect(self._server.url(self.name, ""))
            try:
                await connection.execute(statement.format(name=self.name))
            finally:
                await connection.close()


@pytest.fixture
async def place(postgres_server: PostgresServer) -> AsyncIterator[Place]:
    made = Place(postgres_server)
    await made.operate("DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN")
    yield made
    postgres_server.drop_database(made.name)


def stores_of(database: Database) -> VectorStores:
    return VectorStores(
        knowledge_store(database, FakeClock()),
        SqlChunkVectors(database),
        FakeAttachments(FakeKnowledge(), FakeClock()),
    )


@pytest.mark.parametrize("case", CASES)
async def test_vectors_come_when_the_operator_has_mended_what_is_missing(place: Place, case: str) -> None:
    broken, mended, said = CASES[case]
    embedder = FakeEmbedder()
    await place.operate(*broken)
    first = open_database(place.url)
    try:
        await migrate(first)
        stores = stores_of(first)
        await stores.store.create_base(make_base(), "ann")
        await put(stores.store, "a", ["wine of the hill", "beer of the town"])
        assert said in (await stores.vectors.find_missing() or "")
        assert await stores.vectors.nearest(["kb_a"], await asked(embedder, "wine"), 10) == ()
        hits = await SqlRetrieval(first).search(["kb_a"], "wine", 10)
        assert [hit.chunk.text for hit in hits] == ["wine of the hill"]
        assert await stores.vectors.sweep(None) == 0
        await place.operate(*mended)
    finally:
        await first.close()
    second = open_database(place.url)
    try:
        await migrate(second)
        stores = stores_of(second)
        assert await stores.vectors.find_missing() is None
        await stores.embed(embedder)
        assert sorted(await stores.found(embedder, "wine")) == ["beer of the town", "wine of the hill"]
    finally:
        await second.close()
