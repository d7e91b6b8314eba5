"""`python -m backend reread` beside a backend: killed in the middle, it goes on, and texts keep their vectors."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.embedded_base import World, world_of
from tests.e2e.pair import Pair, lone_backend
from tests.e2e.rereading import reread, start_reread
from tests.e2e.stored_rows import write
from tests.e2e.turns import bare_client
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch

pytestmark = pytest.mark.whole

DOCUMENTS, READ_OTHERWISE = 140, 9
PIPE_BYTES = 4096
LINES_BEFORE_KILL = 5


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_reread_that_is_killed_goes_on_and_embeds_only_texts_that_changed(
    launch: Launch, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    stores: dict[str, str] = {}
    if kind == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        stores["BACKEND_DATABASE_URL"] = postgres.url(postgres.new_database())
        stores["BACKEND_REDIS_URL"] = request.getfixturevalue("valkey_server").url
    embedder = CountedEmbedder(tmp_path / "embedder")
    embedder.start_and_wait()
    try:
        pair = lone_backend(launch, tmp_path / "backend", **stores, **embedder.settings)
        world = await world_of(pair, embedder)
        await reread_over_a_kill(world)
    finally:
        embedder.kill()


async def reread_over_a_kill(world: World) -> None:
    pair, before = world.pair, await world_as_an_earlier_release_left_it(world)
    async with world.searches() as searches:
        told = await asyncio.to_thread(kill_after, LINES_BEFORE_KILL, pair)
        assert told[0].startswith(f"1 of {DOCUMENTS}: doc_")
        done = len(told)
        assert LINES_BEFORE_KILL <= done < DOCUMENTS
        *lines, total = await asyncio.to_thread(reread, pair)
        # A document may have been stored whose line was not told any more.
        assert DOCUMENTS - done - len(lines) in {0, 1}
        assert total == f"{len(lines)} read, 0 refused, 0 changed"
        await world.complete(DOCUMENTS)
        await searches.more(5)
    assert searches.statuses.keys() == {200}
    assert world.embedder.asked() - before == Counter(f"Hill {number}\nWhite wine." for number in range(READ_OTHERWISE))
    assert await asyncio.to_thread(reread, pair) == ["0 read, 0 refused, 0 changed"]


async def world_as_an_earlier_release_left_it(world: World) -> Counter[str]:
    """Put documents, some of which a reader of today reads otherwise; return what the embedder was asked for."""
    await world.put(range(DOCUMENTS - READ_OTHERWISE))
    async with bare_client(world.pair, "ada") as client:
        for number in range(READ_OTHERWISE):
            path = f"/v1/knowledge_bases/{world.base_id}/documents/hill-{number}.txt"
            assert (await client.put(path, content=f"# Hill {number}\n\nWhite wine.".encode())).status_code == 201
    await world.complete(DOCUMENTS)
    await write(world.pair, "UPDATE document SET reader_version = 0", rows=DOCUMENTS)
    was_text = "UPDATE document SET media_type = 'text/markdown' WHERE name LIKE 'hill-%'"
    await write(world.pair, was_text, rows=READ_OTHERWISE)
    return world.embedder.asked()


def kill_after(count: int, pair: Pair) -> list[str]:
    """Kill a run that has told so many lines; what it tells does not fit into the pipe, so that it has not ended."""
    with start_reread(pair, pipesize=PIPE_BYTES) as started:
        assert started.stdout is not None
        told = [started.stdout.readline() for _ in range(count)]
        started.kill()
        return [line.rstrip("\n") for line in (*told, *started.stdout)]
