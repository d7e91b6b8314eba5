"""A deletion of a conversation that does not come to its end: it stays whole, or is gone for everybody and cleared."""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, Engine, Table, event, func, select

from backend.conversations.sql import tables as told
from backend.conversations.sql.conversations import SqlConversationStore
from backend.foundation.sql.database import Database
from backend.foundation.sql.row_steps import ROWS_AT_ONCE
from shared.errors import NotFound, Unavailable
from tests.contract.store_cases import (
    database_url,
    deleted_rows,
    make_end,
    make_entry,
    make_item,
    make_turn,
    migrated,
    sql_stores,
)
from tests.examples import first_of

PARTS = (told.log_entry, told.item, told.model_call, told.seen_point, told.prompt_header)
ENTRIES = 2 * max(ROWS_AT_ONCE.values()) + 3


class Killed(Exception):
    """Stands for `kill -9`: nothing that runs afterwards mends it."""


@pytest.fixture(params=first_of("sqlite", "postgresql"))
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A database with a long conversation of one response."""
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        stores = sql_stores(opened)
        await stores.turns.begin(make_turn())
        await stores.turns.finish(make_end(1))
        places = range(2, 2 + ENTRIES)
        await stores.conversations.append("conv_a", 2, [*map(make_entry, places)], [*map(make_item, places)])
        yield opened


class Unwritable:
    """A `Database` whose commits fail."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, work: Callable[[Connection], object], **_: object) -> object:
        def undone(connection: Connection) -> object:
            work(connection)
            raise Unavailable("Away.")

        return await self._database.write(undone)


@contextmanager
def failing(after: int, error: Exception) -> Generator[None]:
    """Let deletions of rows fail once so many of them have been run."""
    run = 0

    def note(connection: Any, cursor: Any, text: str, *_: object) -> None:
        nonlocal run
        if text.startswith("DELETE"):
            run += 1
            if run > after:
                raise error

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def count(database: Database, table: Table) -> int:
    query = select(func.count()).select_from(table)
    return await database.read(lambda connection: connection.execute(query).scalar_one())


async def test_a_deletion_that_fails_at_once_leaves_the_conversation_whole(database: Database) -> None:
    store = SqlConversationStore(database)
    with pytest.raises(Unavailable):
        await SqlConversationStore(cast(Database, Unwritable(database))).delete("conv_a")
    assert await store.find_left_of_deleted() == []
    assert len(await store.log("conv_a")) == 2 + ENTRIES
    await store.append("conv_a", 2 + ENTRIES, [make_entry(2 + ENTRIES)], [])


@pytest.mark.parametrize("after", [0, 1, 3, 5])
async def test_a_deletion_that_fails_later_has_been_done_for_everybody(database: Database, after: int) -> None:
    store = SqlConversationStore(database)
    with failing(after, Unavailable("Away.")):
        await store.delete("conv_a")
    await is_gone_and_can_be_cleared(database)


@pytest.mark.parametrize("after", [0, 1, 3, 5])
async def test_a_process_that_is_killed_meanwhile_leaves_the_rest_to_another(database: Database, after: int) -> None:
    store = SqlConversationStore(database)
    with failing(after, Killed()), pytest.raises(Killed):
        await store.delete("conv_a")
    await is_gone_and_can_be_cleared(database)


async def is_gone_and_can_be_cleared(database: Database) -> None:
    store, place = SqlConversationStore(database), 2 + ENTRIES
    assert await store.find_left_of_deleted() == ["conv_a"]
    found = await store.find("conv_a")
    assert found is not None
    assert found.tenant == ""
    with pytest.raises(NotFound):
        await store.append("conv_a", place, [make_entry(place)], [])
    with failing(1, Unavailable("Away again.")), pytest.raises(Unavailable):
        await store.clear("conv_a")
    await store.delete("conv_a")
    for each in await store.find_left_of_deleted():
        await store.clear(each)
    assert [await count(database, table) for table in (told.conversation, *PARTS)] == [0] * (1 + len(PARTS))
    assert await count(database, told.response) == 1


async def test_no_step_of_a_deletion_takes_more_rows_than_one_may(database: Database) -> None:
    with deleted_rows() as deleted:
        await SqlConversationStore(database).delete("conv_a")
    assert max(deleted) == ROWS_AT_ONCE[database.dialect]
    assert sum(deleted) >= 2 * ENTRIES
