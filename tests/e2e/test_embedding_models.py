"""Another embedding model: chunks are embedded anew while searches go on, and the vectors of the former one go."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.search.services.embedding_worker import TEXTS_AT_ONCE
from tests.e2e.embedded_base import World, text_of, world_of
from tests.e2e.pair import lone_backend
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.services import Launch

pytestmark = pytest.mark.whole

DOCUMENTS = 3 * TEXTS_AT_ONCE
VECTORS_BY_MODEL = """
    SELECT model, dimension, count(*) FROM search_vector JOIN vector_space ON vector_space.id = space_id
    GROUP BY model, dimension
"""


@pytest.fixture
def embedders(tmp_path: Path) -> Iterator[tuple[CountedEmbedder, CountedEmbedder]]:
    former = CountedEmbedder(tmp_path / "former")
    new = CountedEmbedder(tmp_path / "new", seconds_of_call=0.5, dimension=48)
    former.start_and_wait()
    new.start_and_wait()
    yield former, new
    former.kill()
    new.kill()


async def test_another_model_embeds_anew_while_searches_go_on(
    launch: Launch, tmp_path: Path, embedders: tuple[CountedEmbedder, CountedEmbedder]
) -> None:
    former, new = embedders
    settings = {**former.settings, "BACKEND_EMBEDDING_MODEL": "former"}
    pair = lone_backend(launch, tmp_path / "backend", **settings)
    world = await world_of(pair, former)
    await world.put(range(DOCUMENTS))
    await world.complete(DOCUMENTS)
    [(of_former, dimension, count)] = vectors_in(tmp_path / "backend")
    assert (dimension, count) == (32, DOCUMENTS)
    pair.backend.stop()
    pair = lone_backend(launch, tmp_path / "backend", **new.settings)
    world = World(pair, world.base_id, new)
    async with world.searches() as searches:
        await world.asked_for(TEXTS_AT_ONCE)
        embedded = embedded_chunks(world)
        await world.complete(DOCUMENTS)
        await asyncio.to_thread(pair.backend.wait_until, lambda: len(vectors_in(tmp_path / "backend")) == 1, 60.0)
        await searches.more(3)
    assert embedded < DOCUMENTS, "vectors of the former model do not count"
    [(of_new, dimension, count)] = vectors_in(tmp_path / "backend")
    assert (of_new == of_former, dimension, count) == (False, 48, DOCUMENTS)
    assert searches.statuses.keys() == {200}
    assert new.asked() == {text_of(number): 1 for number in range(DOCUMENTS)} | reference_texts(new)


def reference_texts(embedder: CountedEmbedder) -> dict[str, int]:
    """Return what the embedder was asked for beside the documents."""
    documents = {text_of(number) for number in range(DOCUMENTS)}
    return {text: count for text, count in embedder.asked().items() if text not in documents}


def embedded_chunks(world: World) -> int:
    with world.pair.http(world.pair.key("ada")) as client:
        return int(client.get(f"/v1/knowledge_bases/{world.base_id}").json()["embedded_chunks"])


def vectors_in(directory: Path) -> list[tuple[str, int, int]]:
    with closing(sqlite3.connect(directory / "var" / "ballast.db")) as database:
        return database.execute(VECTORS_BY_MODEL).fetchall()
