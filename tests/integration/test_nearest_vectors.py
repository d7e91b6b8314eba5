"""How the nearest vectors are found in real databases: indexes of large bases, memory, many bases at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, Vector, to_vector
from backend.foundation.sql.database import Database
from backend.search.sql.vector_matrix import MatrixVectors, Outlines
from backend.search.sql.vector_search import IndexedVectors, NearestVectors, NeighbourQuery, SearchedSpace
from backend.search.sql.vectors import SqlChunkVectors
from shared.errors import Unavailable
from tests.contract.knowledge_cases import make_base, put
from tests.contract.store_cases import database_url, migrated
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store

DIMENSION = 32
MODEL = EmbeddingModel(name="made up", dimension=DIMENSION)
LARGE = 200
ROUNDING = 1e-3
"""PostgreSQL compares questions in half precision, too."""

LEASE = timedelta(minutes=1)
BREAK_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index"
INDEXES = "SELECT indexrelid::regclass::text, indisvalid FROM pg_index WHERE indrelid = 'search_vector'::regclass"


def made_vectors(count: int, seed: int) -> list[Vector]:
    rows: NDArray[np.float64] = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return [to_vector(row) for row in rows.tolist()]


class World:
    """A database with vectors by base and by text."""

    def __init__(self, database: Database, url: str) -> None:
        self.database, self.url = database, url
        self.store = knowledge_store(database, FakeClock())
        self.vectors = SqlChunkVectors(database, large_space=LARGE)
        self.by_text: dict[str, Vector] = {}

    async def add(self, base_id: str, count: int) -> None:
        """Make a base whose chunks all have vectors."""
        await self.store.create_base(make_base(base_id), "ann")
        texts = [f"{base_id} {number}" for number in range(count)]
        self.by_text |= dict(zip(texts, made_vectors(count, len(self.by_text)), strict=True))
        await put(self.store, "a.txt", texts, base_id=base_id, heading_path=())
        await self.vectors.discover(MODEL, base_id)
        while taken := (await self.vectors.take_unembedded(MODEL, 256, LEASE)).texts:
            await self.vectors.put(MODEL, [(one, self.by_text[one.text]) for one in taken])

    async def found(self, base_ids: Sequence[str], question: Vector, limit: int = 10) -> list[str]:
        hits = await self.vectors.nearest(base_ids, EmbeddedQuery(MODEL, question), limit)
        return [hit.chunk.text for hit in hits]

    def scores(self, base_ids: Sequence[str], question: Vector) -> dict[str, float]:
        """Return the score of every chunk of some bases."""
        asked = np.frombuffer(question, np.float32)
        return {
            each: float(np.frombuffer(vector, np.float32).astype(np.float16).astype(np.float32) @ asked)
            for each, vector in self.by_text.items()
            if each.split()[0] in base_ids
        }

    async def missed(self, base_ids: Sequence[str], question: Vector, limit: int = 10) -> int:
        """Return how many of the nearest are not found; one as near as the last of them, but for rounding, is one."""
        scores, found = self.scores(base_ids, question), await self.found(base_ids, question, limit)
        nearest = sorted(scores.values(), reverse=True)[:limit]
        assert len(set(found)) == len(found) == len(nearest)
        return sum(scores[each] < nearest[-1] - ROUNDING for each in found)

    async def spaces(self) -> list[SearchedSpace]:
        def read(connection: Connection) -> list[SearchedSpace]:
            query = text("""
                SELECT vector_space.id, knowledge_base.id, dimension, removals, chunk_count
                FROM vector_space JOIN knowledge_base ON knowledge_base.id = knowledge_base_id ORDER BY 1
            """)
            return [SearchedSpace(*row) for row in connection.execute(query)]

        return await self.database.read(read)

    async def indexes(self) -> dict[str, bool]:
        """Return the indexes of large bases, and which of them are whole."""
        found = await self.database.read(lambda connection: connection.execute(text(INDEXES)).all())
        return {row[0]: row[1] for row in found if "nearest" in row[0]}

    async def is_making_an_index(self) -> bool:
        count = text("SELECT count(*) FROM pg_stat_progress_create_index")
        return bool(await self.database.read(lambda connection: connection.execute(count).scalar_one()))


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    url = database_url(request.param, request, tmp_path)
    async with migrated(url) as database:
        yield World(database, url)


@pytest.fixture
async def large(postgres_url: str) -> AsyncIterator[World]:
    """One large base with an index that is not made yet, and a small one."""
    async with migrated(postgres_url) as database:
        made = World(database, postgres_url)
        await made.add("kb_a", LARGE + 50)
        await made.add("kb_b", 20)
        yield made


async def test_what_is_found_is_what_a_comparison_of_all_vectors_finds(world: World) -> None:
    await world.add("kb_a", 150)
    await world.add("kb_b", 30)
    await world.add("kb_c", 5)
    for question in made_vectors(20, 99):
        for base_ids in (["kb_a"], ["kb_a", "kb_b", "kb_c"], ["kb_c"]):
            assert not await world.missed(base_ids, question)


async def test_many_bases_are_searched_at_once(world: World) -> None:
    base_ids = [f"kb_{number}" for number in range(60)]
    for base_id in base_ids:
        await world.add(base_id, 3)
    [question] = made_vectors(1, 99)
    assert not await world.missed(base_ids, question, 100)


async def test_memory_is_bounded_whatever_is_searched(tmp_path: Path) -> None:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        world = World(database, "")
        for number in range(6):
            await world.add(f"kb_{number}", 40)
        two_bases, spaces = 2 * Outlines.bytes_of(40, DIMENSION), await world.spaces()
        [question] = made_vectors(1, 99)
        for most_bytes in (two_bases, Outlines.bytes_of(40, DIMENSION) - 1):
            matrices = MatrixVectors(most_bytes)
            for some in (spaces, spaces[:1], spaces[3:], spaces):
                found = await run(database, matrices, some, NeighbourQuery(question, 10, None))
                assert found == await run(database, MatrixVectors(), some, NeighbourQuery(question, 10, None))
                assert matrices.bytes_in_memory <= most_bytes


async def run(
    database: Database, nearest: NearestVectors, spaces: Sequence[SearchedSpace], asked: NeighbourQuery
) -> Any:
    return await database.snapshot(lambda connection: nearest.nearest(connection, spaces, asked))


async def test_a_large_base_gets_an_index_that_is_used_and_goes_with_it(large: World) -> None:
    assert await large.indexes() == {}
    await large.vectors.upkeep()
    [(name, is_whole)] = (await large.indexes()).items()
    assert is_whole
    spaces = await large.spaces()
    question = made_vectors(1, 99)[0]

    def scans(connection: Connection) -> int:
        # So few vectors are sorted sooner than looked up; what is tried is whether the query fits the index.
        connection.execute(text("SET LOCAL enable_sort = off"))
        IndexedVectors(LARGE).nearest(connection, spaces, NeighbourQuery(question, 10, None))
        count = text("SELECT pg_stat_get_xact_numscans(CAST(:name AS regclass))")
        return connection.execute(count, {"name": name}).scalar_one()

    assert await large.database.snapshot(scans) == 1
    assert sum([await large.missed(["kb_a", "kb_b"], each) for each in made_vectors(20, 98)]) <= 0.03 * 20 * 10
    await large.store.delete_base("kb_a")
    await large.vectors.sweep(MODEL)
    await large.vectors.upkeep()
    assert await large.indexes() == {}
    assert not await large.missed(["kb_b"], question)


async def test_searches_go_on_while_an_index_is_made_and_one_that_is_broken_off_is_made_anew(large: World) -> None:
    writer: Any = await cast(Any, asyncpg).connect(large.url.replace("+asyncpg", ""))
    try:
        async with writer.transaction():
            await writer.execute("LOCK TABLE search_vector IN ROW EXCLUSIVE MODE")
            making = asyncio.create_task(large.vectors.upkeep())
            while not await large.is_making_an_index():
                continue
            assert not await large.missed(["kb_a"], made_vectors(1, 99)[0])
            await large.database.read(lambda connection: connection.execute(text(BREAK_OFF)).all())
            with pytest.raises(Unavailable):
                await making
    finally:
        await writer.close()
    assert list((await large.indexes()).values()) == [False]
    await large.vectors.upkeep()
    assert list((await large.indexes()).values()) == [True]
