"""One contract for every `FileStore`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from backend.files.domain import FilePurpose, FileQuery, FileQuota, StoredFile
from backend.files.ports import FileStore
from backend.files.sql.files import PIECE_BYTES, SqlFileStore
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.domain.paging import PageQuery
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.migrations.migrate import migrate
from shared.errors import KeyHeld, NotFound, PayloadTooLarge
from tests.fakes.clock import FakeClock
from tests.fakes.store_files import FakeFiles

T0 = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
QUOTA = 4 * PIECE_BYTES
MOST_FILES = 9


class PausedDatabase:
    """A database that begins no write beyond some before it is told to."""

    def __init__(self, database: Database, writes: int) -> None:
        self._database = database
        self._left = writes
        self.is_paused = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def write(self, work: Callable[[Connection], Any]) -> Any:
        """Write, after a pause where it is due."""
        self._left -= 1
        if self._left < 0:
            self.is_paused.set()
            await self.goes_on.wait()
        return await self._database.write(work)


@asynccontextmanager
async def sql_files(url: str) -> AsyncGenerator[FileStore]:
    database = open_database(url)
    try:
        await migrate(database)
        yield SqlFileStore(database, FakeClock())
    finally:
        await database.close()


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FileStore]:
    if request.param == "fake":
        yield FakeFiles()
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    url = sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with sql_files(url) as opened:
        yield opened


def make_file(file_id: str, body: bytes, *, user_id: str = "ann", age: int = 0) -> StoredFile:
    return StoredFile(
        id=file_id,
        tenant="acme",
        user_id=user_id,
        filename="a.txt",
        purpose=FilePurpose.FOR_USERS,
        content_type=None,
        size_bytes=len(body),
        sha256="0",
        created_at=T0 - timedelta(seconds=age),
    )


async def add(
    store: FileStore,
    file_id: str,
    body: bytes = b"text",
    *,
    user_id: str = "ann",
    age: int = 0,
    claim: KeyClaim | None = None,
) -> None:
    file = make_file(file_id, body, user_id=user_id, age=age)
    await store.add(file, body, FileQuota(MOST_FILES, QUOTA), claim)


async def body_of(store: FileStore, file_id: str) -> bytes:
    return b"".join([piece async for piece in store.pieces(file_id)])


async def test_a_file_comes_back_with_all_its_bytes(store: FileStore) -> None:
    body = bytes(range(256)) * (PIECE_BYTES // 100)
    await add(store, "file-a", body)
    assert await store.find("file-a") == make_file("file-a", body)
    assert await body_of(store, "file-a") == body
    assert await store.find("file-b") is None


async def test_a_removed_file_is_gone_and_left_to_be_purged(store: FileStore) -> None:
    await add(store, "file-a", b"x" * (2 * PIECE_BYTES + 1))
    await add(store, "file-b")
    assert await store.leftovers(T0, 9) == ()
    assert await store.remove("file-a") is True
    assert await store.remove("file-a") is False
    assert await store.find("file-a") is None
    with pytest.raises(NotFound):
        await body_of(store, "file-a")
    assert await store.leftovers(T0, 9) == ("file-a",)
    await store.purge("file-a")
    assert await store.leftovers(T0, 9) == ()
    assert await body_of(store, "file-b") == b"text"


async def test_pages_are_by_age_and_id_and_of_one_user(store: FileStore) -> None:
    for file_id, age in (("file-c", 2), ("file-a", 1), ("file-b", 1)):
        await add(store, file_id, age=age)
    await add(store, "file-x", user_id="bob")

    async def ids(user_id: str = "ann", **page: object) -> list[str]:
        query = FileQuery(tenant="acme", user_id=user_id, page=PageQuery.model_validate({"limit": 2, **page}))
        return [file.id for file in await store.page(query)]

    assert await ids() == ["file-b", "file-a", "file-c"]
    assert await ids(after="file-a") == ["file-c"]
    assert await ids(order="asc", after="file-c") == ["file-a", "file-b"]
    assert await ids("bob") == ["file-x"]
    with pytest.raises(NotFound):
        await ids(after="file-x")


async def test_a_user_has_a_quota(store: FileStore) -> None:
    await add(store, "file-a", b"x" * (QUOTA - 2))
    await add(store, "file-b", b"xy", user_id="bob")
    await add(store, "file-c", b"xy")
    with pytest.raises(PayloadTooLarge):
        await add(store, "file-d", b"x")
    await store.remove("file-c")
    await add(store, "file-d", b"x")


async def test_a_user_has_so_many_files_and_no_more(store: FileStore) -> None:
    for number in range(MOST_FILES):
        await add(store, f"file-{number}", b"x")
    with pytest.raises(PayloadTooLarge):
        await add(store, "file-x", b"x")
    await add(store, "file-x", b"x", user_id="bob")
    await store.remove("file-0")
    await add(store, "file-y", b"x")


async def test_a_file_whose_key_is_taken_is_not_stored(store: FileStore) -> None:
    claim = KeyClaim(id="key", fingerprint="body", claimed_at=T0)
    await add(store, "file-a", claim=claim.of("file-a"))
    with pytest.raises(KeyHeld):
        await add(store, "file-b", claim=claim.of("file-b"))
    assert await store.find("file-b") is None
    assert await body_of(store, "file-a") == b"text"
    for left in await store.leftovers(T0, 9):
        await store.purge(left)
    await add(store, "file-b", claim=claim.model_copy(update={"id": "another"}).of("file-b"))
    assert await body_of(store, "file-b") == b"text"


async def test_a_postponed_file_is_left_over_later_and_behind_the_others(store: FileStore) -> None:
    for file_id in ("file-a", "file-b"):
        await add(store, file_id)
        await store.remove(file_id)
    await store.postpone("file-a", FakeClock().now() + timedelta(hours=1))
    assert await store.leftovers(T0, 1) == ("file-b",)
    assert await store.leftovers(T0, 9) == ("file-b",)
    await store.postpone("file-a", FakeClock().now())
    assert set(await store.leftovers(T0, 9)) == {"file-a", "file-b"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_an_upload_that_broke_off_is_seen_by_nobody_and_purged(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    async with sql_files(url if kind == "sqlite" else request.getfixturevalue("postgres_url")) as store:
        async with asyncio.TaskGroup() as group:
            adding = group.create_task(add(store, "file-a", b"x" * QUOTA))
            while not await store.leftovers(T0 + timedelta(days=365), 9):
                continue
            adding.cancel()
        assert await store.find("file-a") is None
        assert await store.leftovers(T0 - timedelta(days=365), 9) == ()
        assert await store.leftovers(T0 + timedelta(days=365), 9) == ("file-a",)
        await store.purge("file-a")
        assert await store.leftovers(T0 + timedelta(days=365), 9) == ()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("writes", [2, 5])
async def test_an_upload_that_goes_on_after_its_file_was_purged_stores_nothing(
    kind: str, writes: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    database = open_database(url if kind == "sqlite" else request.getfixturevalue("postgres_url"))
    try:
        await migrate(database)
        store, paused = SqlFileStore(database, FakeClock()), PausedDatabase(database, writes)
        frozen = SqlFileStore(cast(Database, paused), FakeClock())
        adding = asyncio.create_task(add(frozen, "file-a", b"x" * QUOTA))
        await paused.is_paused.wait()
        await store.purge("file-a")
        paused.goes_on.set()
        with pytest.raises(NotFound):
            await adding
        assert await store.find("file-a") is None
        assert await store.leftovers(T0 + timedelta(days=365), 9) == ()
    finally:
        await database.close()


async def test_a_file_that_is_not_removed_is_not_purged(store: FileStore) -> None:
    await add(store, "file-a")
    await store.purge("file-a")
    assert await body_of(store, "file-a") == b"text"
