"""Migrations make exactly the tables that the code knows, keep what is there, and may be run by many at once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, bindparam, insert, text

from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.schema import Instant
from backend.knowledge.sql.rows import base_parameters
from backend.knowledge.sql.tables import knowledge_base
from backend.migrations.chosen import SCRIPTS
from backend.migrations.compatibility import newest_revision, oldest_code_for
from backend.migrations.migrate import UnknownSchema, migrate
from backend.migrations.tables import metadata
from backend.search.sql import legacy_index
from backend.search.sql.retrieval import SqlRetrieval
from shared.models.messages import UserMessage
from tests.contract.knowledge_cases import T0, make_base, put
from tests.contract.store_cases import empty_database_url, make_turn, migrated, sql_stores
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.integration.schemas import SQLITE_SHAPE, closing_database, import_every_table
from tests.servers.postgres import PostgresServer

POSTGRES_SHAPE = """
    SELECT attrelid::regclass || '.' || attname, concat_ws(
        ' ', attnum, format_type(atttypid, atttypmod), attnotnull, attstorage, attcollation::regcollation, attidentity,
        pg_get_expr(adbin, adrelid), reloptions
    )
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0
    UNION ALL SELECT conname, conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database_url(request.param, request, tmp_path)


def is_ours(_object: Any, name: str | None, kind: str, _reflected: bool, _compared: Any) -> bool:
    """Leave out what differs by database and is written in SQL: search indexes and their shadow tables."""
    others = ("fts_", "search_", "alembic_version", "schema_revision")
    return not (kind == "table" and name is not None and name.startswith(others))


async def test_the_migrated_database_is_what_the_code_says(url: str) -> None:
    import_every_table()

    def differences(connection: Connection) -> list[Any]:
        def is_here(item: Any, *told: Any) -> bool:
            """Leave out an index of another dialect, too."""
            condition = getattr(item, "_ddl_if", None)
            return is_ours(item, *told) and (condition is None or condition.dialect == connection.dialect.name)

        options = {"include_object": is_here, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    async with migrated(url) as database:
        assert await database.read(differences) == []


async def test_a_database_that_holds_something_else_is_upgraded(url: str) -> None:
    async with closing_database(url) as database:
        await database.write(_make_another_table)
        await migrate(database)
        assert await database.read(_revisions) == [newest_revision()]


async def test_migrating_again_keeps_what_is_there(url: str) -> None:
    database = open_database(url)
    await migrate(database)
    stores = sql_stores(database)
    await stores.turns.begin(make_turn())
    await migrate(database)
    assert await stores.turns.find("resp_a") == make_turn().response
    assert await stores.conversations.log("conv_a") == make_turn().entries
    await database.close()


async def test_an_upgrade_keeps_the_log_of_a_conversation(url: str) -> None:
    database = open_database(url)
    await migrate(database, "0001")
    await database.write(_insert_first_release)
    await migrate(database)
    stores = sql_stores(database)
    found = await stores.conversations.find("conv_old")
    assert found is not None
    assert (found.model, found.sent) == ("model-a", None)
    (entry,) = await stores.conversations.log("conv_old")
    assert (entry.message, entry.reset, entry.context) == (UserMessage(content="Hi"), None, None)
    await database.close()


def _insert_first_release(connection: Connection) -> None:
    connection.execute(
        text(
            "INSERT INTO conversation (id, tenant, user_id, created_at, metadata, log_length, epoch, turn_defaults,"
            " cache_key) VALUES ('conv_old', 'acme', 'ann', '2026-11-22 09:30:00', '{}', 1, 0, :defaults, 'key')"
        ),
        {"defaults": '{"instructions":"","model":"model-a","functions":[],"knowledge_base_ids":[]}'},
    )
    connection.execute(
        text(
            "INSERT INTO log_entry (conversation_id, position, epoch, turn_id, kind, role, content, created_at)"
            " VALUES ('conv_old', 0, 0, 'resp_old', 'user', 'user', :content, '2026-11-22 09:30:00')"
        ),
        {"content": '{"content":"Hi","role":"user"}'},
    )


async def test_documents_from_before_document_versions_are_found_replaced_and_deleted(url: str) -> None:
    def put_as_before(connection: Connection) -> None:
        legacy_index.open_base(connection, "kb_a")
        named = {name: value for name, value in base_parameters(make_base()).items() if name not in NEWER_COLUMNS}
        connection.execute(insert(knowledge_base), {**named, **OLD_COUNTS})
        instant = bindparam("now", T0, Instant)
        blob = "bytea" if connection.dialect.name == "postgresql" else "BLOB"
        for statement in OLD_DOCUMENT:
            filled = text(statement.format(blob=blob))
            connection.execute(filled.bindparams(instant) if ":now" in statement else filled)

    async with closing_database(url) as database:
        await migrate(database, "0004")
        store = knowledge_store(database, FakeClock())
        await database.write(put_as_before)
        await migrate(database)
        (binding,) = await store.bindings("acme", "ann", None)
        assert binding.base == make_base()
        assert [chunk.text for chunk in await store.chunks("doc_old")] == ["one two", "three"]
        assert await store.document_body("doc_old") == b"old"
        everything = await SqlRetrieval(database).read_all(["kb_a"], 100)
        assert everything is not None
        assert [hit.document_name for hit in everything] == ["old.md", "old.md"]
        assert (await put(store, "old.md", ["four"])).id == "doc_old"
        assert [hit.chunk.text for hit in await SqlRetrieval(database).search(["kb_a"], "four", 9)] == ["four"]
        assert await store.delete_document("kb_a", "old.md")
        assert await database.read(lambda c: c.execute(text("SELECT COUNT(*) FROM chunk")).scalar_one()) == 0


NEWER_COLUMNS = {
    "restricted_translation",
    "metadata",
    "last_active_at",
    "embed",
    "restricted_grade",
    "support",
    "content",
}
OLD_COUNTS = {"chunk_count": 2, "index_token_count": 7, "next_chunk_number": 2}
OLD_DOCUMENT = (
    "INSERT INTO knowledge_member (knowledge_base_id, user_id, role) VALUES ('kb_a', 'ann', 'owner')",
    """
    INSERT INTO document (id, knowledge_base_id, name, media_type, sha256, size_bytes, chunk_count, created_at, body)
    VALUES ('doc_old', 'kb_a', 'old.md', 'text/markdown', '', 3, 2, :now, CAST('old' AS {blob}))
    """,
    """
    INSERT INTO chunk (document_id, ordinal, id, knowledge_base_id, number, tokens, heading_path, text)
    VALUES ('doc_old', 0, 'chunk_0', 'kb_a', 0, 3, '[]', 'one two'),
        ('doc_old', 1, 'chunk_1', 'kb_a', 1, 3, '["Top"]', 'three')
    """,
)


async def test_many_may_migrate_at_once(url: str) -> None:
    databases = [open_database(url) for _ in range(4)]
    await asyncio.gather(*(migrate(database) for database in databases))
    await sql_stores(databases[0]).turns.begin(make_turn())
    for database in databases:
        await database.close()


async def test_an_empty_sqlite_gets_what_all_upgrades_together_make(tmp_path: Path) -> None:
    urls = [f"sqlite+aiosqlite:///{tmp_path}/{name}.db" for name in ("created", "upgraded")]
    await assert_created_as_upgraded(urls[0], urls[1], SQLITE_SHAPE)


async def test_an_empty_postgresql_gets_what_all_upgrades_together_make(postgres_server: PostgresServer) -> None:
    names = [postgres_server.new_database() for _ in range(2)]
    try:
        urls = [postgres_server.url(name) for name in names]
        await assert_created_as_upgraded(urls[0], urls[1], POSTGRES_SHAPE)
    finally:
        for name in names:
            postgres_server.drop_database(name)


async def assert_created_as_upgraded(created_url: str, upgraded_url: str, shape: str) -> None:
    def parts(connection: Connection) -> list[tuple[Any, ...]]:
        return sorted((name, " ".join(told.split())) for name, told in connection.execute(text(shape)))

    async with migrated(created_url) as created, closing_database(upgraded_url) as upgraded:
        await migrate(upgraded, newest_revision())
        assert await created.read(_revisions) == await upgraded.read(_revisions) == [newest_revision()]
        assert await created.read(parts) == await upgraded.read(parts) != []


async def test_a_newer_schema_than_ours_is_refused(tmp_path: Path) -> None:
    """As after a rollback to a release that does not know what a newer one has made."""
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        await database.write(_pretend_a_newer_revision)
        with pytest.raises(UnknownSchema, match=f"9999.* {newest_revision()}"):
            await migrate(database)


def test_the_newest_revision_is_told_without_alembic() -> None:
    assert ScriptDirectory(str(SCRIPTS)).get_heads() == [newest_revision()]


def _make_another_table(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE something_else (a INTEGER)"))


def _revisions(connection: Connection) -> list[str]:
    """Return the revision, having checked the oldest release that may run, which stands beside it."""
    (revision,) = connection.execute(text("SELECT version_num FROM schema_revision")).scalars()
    oldest = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    assert oldest == [oldest_code_for(revision)]
    return [revision]


def _pretend_a_newer_revision(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
