"""`check` of both services over real servers that are away, refuse, or lack something."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from sqlalchemy import Connection, text

from backend.foundation.sql.chosen import open_database
from chat_shell.check import check_parts as checked_parts_of_chat_shell
from shared.checked_parts import CheckedPart
from tests.fakes.embedding_server import FakeEmbeddingServer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.unit.backend.checks import NEEDED, parts_of

WITHOUT_PGVECTOR = (
    "CREATE VIEW public.pg_available_extensions AS SELECT 'vector' AS name, '0.5.1' AS default_version",
    "CREATE TABLE public.pg_extension (extname text, extversion text)",
)


@pytest.mark.parametrize(
    ("name", "scheme", "part", "mend"),
    [
        ("BACKEND_DATABASE_URL", "postgresql+asyncpg", "database", "start PostgreSQL"),
        ("BACKEND_REDIS_URL", "redis", "Redis", "start Redis"),
        ("BACKEND_EMBEDDING_BASE_URL", "http", "embedder", "BACKEND_EMBEDDING_BASE_URL"),
    ],
)
async def test_what_is_away_is_named(name: str, scheme: str, part: str, mend: str) -> None:
    environ = {**NEEDED, name: f"{scheme}://ann:hidden@127.0.0.1:{free_port()}/x"}
    if scheme == "http":
        environ |= {name: environ[name].replace("ann:hidden@", ""), "BACKEND_EMBEDDING_MODEL": "e5"}
    found = (await parts_of(environ))[part]
    assert not found.is_well
    assert mend in found.mend
    assert "hidden" not in found.line


async def test_a_database_without_pgvector_is_named(postgres_server: PostgresServer) -> None:
    name = postgres_server.new_database()
    url = postgres_server.url(name)
    database = open_database(url)

    def hide(connection: Connection) -> None:
        for statement in (*WITHOUT_PGVECTOR, f"ALTER DATABASE {name} SET search_path = public, pg_catalog"):
            connection.execute(text(statement))

    await database.write(hide)
    await database.close()
    part = (await parts_of({**NEEDED, "BACKEND_DATABASE_URL": url}))["database"]
    assert not part.is_well
    assert "pgvector 0.8 or newer; the database has 0.5.1" in part.found


async def test_an_embedder_that_works_is_named() -> None:
    async with FakeEmbeddingServer() as server:
        environ = {"BACKEND_EMBEDDING_BASE_URL": server.base_url, "BACKEND_EMBEDDING_MODEL": "fake"}
        part = (await parts_of({**NEEDED, **environ}))["embedder"]
    assert part == CheckedPart("embedder", True, "fake makes vectors.")


async def test_chat_shell_names_a_backend_that_is_away() -> None:
    environ = {"SERVICE_TOKEN": NEEDED["SERVICE_TOKEN"], "CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{free_port()}"}
    settings, way = [part async for part in checked_parts_of_chat_shell(environ)]
    assert settings.is_well
    assert (way.is_well, way.mend.partition(",")[0]) == (False, "start the backend")


async def test_chat_shell_finds_its_backend() -> None:
    async def alive(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.router.add_get("/healthz", alive)
    async with TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        parts = [part async for part in checked_parts_of_chat_shell({**NEEDED, "CHAT_SHELL_BACKEND_URL": url})]
    assert parts[-1].is_well
