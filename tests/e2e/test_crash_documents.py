"""A backend that is killed while it stores or deletes: none of it is there, and nothing of it stays."""

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx2
import pytest

from tests.e2e.pair import lone_backend
from tests.e2e.stored_rows import count_rows
from tests.e2e.turns import bare_client, new_base
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole


async def test_a_backend_that_is_killed_while_it_stores_a_document_has_stored_none_of_it(
    launch: Launch, tmp_path: Path
) -> None:
    pair, path = lone_backend(launch, tmp_path), tmp_path / "var" / "ballast.db"
    large = "\n\n".join(f"Barrel {number} holds wine of the year {number % 97}." for number in range(30_000)).encode()
    async with bare_client(pair, "survivor") as client:
        base_id = await new_base(client, "Cellar", list="The wine is red.")
        documents = f"/v1/knowledge_bases/{base_id}/documents"
        putting = asyncio.create_task(client.put(f"{documents}/large.txt", content=large))
        while await asyncio.to_thread(count_rows, path, "chunk") < 2:
            continue
        pair.backend.kill()
        with pytest.raises(httpx2.TransportError):
            await putting
        assert await asyncio.to_thread(count_rows, path, "unseen_edition") == 1

        pair.backend.start()
        await asyncio.to_thread(pair.backend.wait_ready)
        assert [document["name"] for document in (await client.get(documents)).json()["data"]] == ["list.md"]
        found = await client.post(f"/v1/knowledge_bases/{base_id}/search", json={"query": "wine of the year"})
        assert [hit["document"] for hit in found.json()["data"]] == ["list.md"]
        while await asyncio.to_thread(count_rows, path, "unseen_edition"):
            continue
        assert await asyncio.to_thread(count_rows, path, "chunk") == 1
        assert (await client.put(f"{documents}/large.txt", content=large)).status_code == 201

        deleting = asyncio.create_task(client.delete(f"/v1/knowledge_bases/{base_id}"))
        while await asyncio.to_thread(count_rows, path, "knowledge_member"):
            continue
        pair.backend.kill()
        with suppress(httpx2.TransportError):
            await deleting
        pair.backend.start()
        await asyncio.to_thread(pair.backend.wait_ready)
        assert (await client.get(f"/v1/knowledge_bases/{base_id}")).status_code == 404
        for table in ("knowledge_base", "document", "chunk", "index_segment", "index_page"):
            while await asyncio.to_thread(count_rows, path, table):
                continue


async def test_a_file_whose_reader_is_killed_becomes_one_document_of_another_replica(
    launch: Launch, tmp_path: Path, postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    database = postgres_server.url(postgres_server.new_database())
    stores = {"BACKEND_DATABASE_URL": database, "BACKEND_REDIS_URL": valkey_server.url}
    first = lone_backend(launch, tmp_path / "first", **stores)
    async with AsyncExitStack() as opened:
        one = await opened.enter_async_context(first.async_client("survivor"))
        sql: Any = await cast(Any, asyncpg).connect(database.replace("+asyncpg", ""))
        opened.push_async_callback(sql.close)
        file = await one.files.create(file=("wine.md", b"# Cellar\n\nThe wine is red."), purpose="assistants")
        async with sql.transaction():
            # No chunk can be stored until this ends, so that the reader is in the middle of it.
            await sql.execute("LOCK TABLE chunk IN EXCLUSIVE MODE")
            store = await one.vector_stores.create(name="Cellar", file_ids=[file.id])
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'chunk'::regclass"
            while not await sql.fetchval(waits):
                continue
            first.backend.kill()
        assert await sql.fetchval("SELECT attempts FROM attachment") == 1
        await sql.execute("UPDATE attachment SET leased_until = now()")
        second = lone_backend(launch, tmp_path / "second", **stores)
        other = await opened.enter_async_context(second.async_client("survivor"))
        while (await other.vector_stores.retrieve(store.id)).file_counts.in_progress:
            continue
        (read,) = (await other.vector_stores.files.list(store.id)).data
        assert (read.id, read.status) == (file.id, "completed")
        (found,) = (await other.vector_stores.search(store.id, query="wine")).data
        assert (found.file_id, found.filename) == (file.id, "wine.md")
        assert await sql.fetchval("SELECT count(*) FROM document") == 1
