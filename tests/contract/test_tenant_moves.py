"""A tenant moves between two databases in which every table has rows of theirs and of others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import pytest
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    Table,
    Update,
    delete,
    insert,
    select,
    text,
    update,
)

from backend.cells.domain import MoveOrder, addresses_of, with_routes
from backend.cells.sql.fence import tables_with_fence
from backend.cells.sql.owned import LEFT_BEHIND, belongs_to, columns_to_move, identity_of, tables_of_tenants
from backend.conversations.domain.responses import ARRIVING
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.foundation.sql.schema import Instant
from backend.migrations.tables import metadata
from backend.move_tenant import TenantMove
from shared.environment import WrongSetting
from shared.errors import Unavailable
from tests.contract.store_cases import T0
from tests.servers.postgres import PostgresServer
from tests.servers.reused_databases import ReusedDatabases

LEAVING, STAYING = "acme", "bolt"
NUMBERS = {LEAVING: 1, STAYING: 2}
VALUES: dict[str, dict[str, Any]] = {
    "conversation": {"running_response_id": None},
    "response": {"status": "completed"},
    "attachment": {"status": "completed"},
    "api_key": {"origin": "issued"},
    "knowledge_base": {"indexed_version": None, "version": 1},
    "document": {"indexed_edition_id": None},
}


class Cells(NamedTuple):
    """Two cells, and a move from the first to the second."""

    first: Database
    second: Database
    move: TenantMove

    def order(self, **changes: Any) -> TenantMove:
        return TenantMove(self.first, self.second, MoveOrder(LEAVING, "c2", **changes))


@pytest.fixture
def urls(postgres_server: PostgresServer, reused_databases: ReusedDatabases) -> Iterator[list[str]]:
    names = [reused_databases.take() for _ in range(2)]
    yield [postgres_server.url(name) for name in names]
    for name in names:
        postgres_server.drop_database(name)


@pytest.fixture
async def cells(urls: list[str]) -> AsyncIterator[Cells]:
    first, second = (open_database(url) for url in urls)
    yield Cells(first, second, TenantMove(first, second, MoveOrder(LEAVING, "c2")))
    for database in (first, second):
        await database.close()


def value_of(column: Column[Any], tenant: str) -> Any:
    for key in column.foreign_keys:
        return value_of(key.column, tenant)
    if column.name == "tenant":
        return tenant
    if column.name == "created":
        return f"conversation-{tenant} more"
    kinds = {Boolean: False, LargeBinary: b"x", Instant: T0, Integer: NUMBERS[tenant]}
    of_kind = [value for kind, value in kinds.items() if isinstance(column.type, kind)]
    return of_kind[0] if of_kind else f"{column.table.name}-{tenant}"


def row_of(table: Table, tenant: str) -> dict[str, Any]:
    return {column.name: value_of(column, tenant) for column in table.columns} | VALUES.get(table.name, {})


def fill(connection: Connection) -> None:
    for table in metadata.sorted_tables:
        if table.name != "tenant_move":
            connection.execute(insert(table), [row_of(table, LEAVING), row_of(table, STAYING)])


def rows_of(connection: Connection, tenant: str) -> dict[str, list[Any]]:
    return {
        table.name: [
            tuple(row)
            for row in connection.execute(
                select(*(table.c[name] for name in columns_to_move(table))).where(belongs_to(table, tenant))
            )
        ]
        for table in tables_of_tenants()
    }


def counts(connection: Connection) -> dict[str, int]:
    return {table.name: len(connection.execute(select(table)).all()) for table in metadata.sorted_tables}


def test_each_table_is_moved_or_says_why_not() -> None:
    """A table added tomorrow is moved by its `tenant` or its foreign keys; where it has neither, this fails."""
    moved = {table.name for table in tables_of_tenants()}
    assert moved | set(LEFT_BEHIND) == set(metadata.tables)
    assert moved & set(LEFT_BEHIND) == set()


def test_each_row_is_told_by_what_is_the_same_in_each_cell() -> None:
    """A key that the database numbers says nothing in another one."""
    assert {
        table.name for table in tables_of_tenants() if not set(identity_of(table)) <= set(columns_to_move(table))
    } == set()


async def test_all_that_is_theirs_moves_and_nothing_of_others(cells: Cells) -> None:
    await cells.first.write(fill)
    theirs = await cells.first.read(lambda connection: rows_of(connection, LEAVING))
    assert {name for name, rows in theirs.items() if not rows} == set()
    await cells.move.run("")
    assert await cells.second.read(lambda connection: rows_of(connection, LEAVING)) == theirs
    others = await cells.second.read(lambda connection: rows_of(connection, STAYING))
    assert {name for name, rows in others.items() if rows} == set()
    assert await cells.first.read(lambda connection: rows_of(connection, LEAVING)) == theirs | {"waiting_turn": []}


def touch(table: Table, tenant: str) -> Update:
    name = columns_to_move(table)[0]
    return update(table).values({name: table.c[name]}).where(belongs_to(table, tenant))


async def test_behind_the_switch_nothing_of_theirs_is_written_and_all_of_others(cells: Cells) -> None:
    await cells.first.write(fill)
    await cells.move.run("")
    for table in tables_with_fence():
        if table.name != "waiting_turn":
            with pytest.raises(Unavailable, match="being moved"):
                await run(cells.first, touch(table, LEAVING))
        await run(cells.first, touch(table, STAYING))


async def test_the_old_copy_is_dropped_and_nothing_else(cells: Cells) -> None:
    await cells.first.write(fill)
    before = await cells.first.read(counts)
    await cells.move.run("")
    await cells.order(is_drop=True).run("")
    gone = {table.name for table in tables_of_tenants()} | {"index_segment", "index_gone"}
    after = {name: count - (name in gone) for name, count in before.items()}
    assert await cells.first.read(counts) == after
    triggers = text("SELECT tgname FROM pg_trigger WHERE tgname = 'ballast_fence'")
    assert await cells.first.read(lambda work: work.execute(triggers).all()) == []


async def test_what_changes_between_two_copies_follows(cells: Cells) -> None:
    """Rows that change, come and go; and a name that one document gives up and another one takes."""
    await cells.first.write(fill)
    await cells.move.begin()
    first = await cells.move.copy.bring(None)
    document, member = metadata.tables["document"], metadata.tables["knowledge_member"]
    again = row_of(document, LEAVING) | {"id": "document-new", "edition_id": "edition-new"}
    its = member.c.knowledge_base_id == f"knowledge_base-{LEAVING}"
    await run(
        cells.first,
        delete(document).where(document.c.id == f"document-{LEAVING}"),
        insert(document).values(**again),
        update(member).where(its).values(role="owner"),
        delete(metadata.tables["agent_member"]),
    )
    copied = await cells.move.copy.bring(first.seen)
    assert copied.rows < len(tables_of_tenants())
    expected, found = [await cells_of(each) for each in (cells.first, cells.second)]
    assert found == expected
    assert (await cells.move.copy.bring(copied.seen)).deleted == 0


async def cells_of(database: Database) -> dict[str, list[Any]]:
    found = await database.read(lambda connection: rows_of(connection, LEAVING))
    return {name: rows for name, rows in found.items() if name not in ("api_key", "waiting_turn")}


async def run(database: Database, *changes: Any) -> None:
    def work(connection: Connection) -> None:
        for change in changes:
            connection.execute(change)

    await database.write(work)


async def test_before_the_switch_it_goes_back_and_behind_it_not(cells: Cells) -> None:
    await cells.first.write(fill)
    before = await cells.first.read(counts), await cells.second.read(counts)
    await cells.move.begin()
    await cells.move.copy.bring(None)
    await cells.order(is_back=True).run("")
    assert (await cells.first.read(counts), await cells.second.read(counts)) == before
    await cells.move.run("")
    with pytest.raises(WrongSetting, match="left already"):
        await cells.order(is_back=True).run("")


async def test_a_turn_that_runs_goes_on_and_its_conversation_follows(cells: Cells) -> None:
    await cells.first.write(fill)
    conversation, response, item = (metadata.tables[name] for name in ("conversation", "response", "item"))
    its, turn = conversation.c.id == f"conversation-{LEAVING}", response.c.id == f"response-{LEAVING}"
    begin = (
        delete(metadata.tables["seen_point"]),
        update(response).where(turn).values(status="in_progress", conversation_id=f"conversation-{LEAVING}"),
        update(conversation).where(its).values(running_response_id=f"response-{LEAVING}"),
    )
    end = (
        update(response).where(turn).values(status="completed", body="done"),
        insert(item).values(**row_of(item, LEAVING) | {"sequence": 9, "id": "item-new"}),
        update(conversation).where(its).values(running_response_id=None),
    )
    await run(cells.first, *begin)
    moving = asyncio.create_task(cells.move.run(""))
    state = select(conversation.c.running_response_id, response.c.status, response.c.replica).where(
        its, turn, conversation.c.id == response.c.conversation_id
    )
    while not (found := await cells.second.read(lambda work: work.execute(state).all())):  # noqa: ASYNC110 -- it tells nobody
        await asyncio.sleep(0.01)
    assert found == [(ARRIVING, "in_progress", "cell:first")]
    await run(cells.first, *end)
    await moving
    expected, found = [await cells_of(each) for each in (cells.first, cells.second)]
    assert found == expected
    with pytest.raises(Unavailable, match="being moved"):
        await run(cells.first, *begin)


@pytest.mark.parametrize(
    "arguments",
    [[], ["t"], ["t", "--to"], ["t", "--to", "c2", "--now"], ["t", "--to", "c2", "--drop", "--back"]],
)
def test_an_order_of_another_form_is_none(arguments: list[str]) -> None:
    assert MoveOrder.parse(arguments) is None


def test_an_order_names_tenant_and_cell() -> None:
    assert MoveOrder.parse(["t", "--to", "c2"]) == MoveOrder("t", "c2")
    assert MoveOrder.parse(["t", "--to", "c2", "--routes", "r.json"]) == MoveOrder("t", "c2", routes="r.json")
    assert MoveOrder.parse(["t", "--to", "c2", "--drop"]) == MoveOrder("t", "c2", is_drop=True)
    assert MoveOrder.parse(["t", "--to", "c2", "--back"]) == MoveOrder("t", "c2", is_back=True)


def test_cells_are_named_with_their_addresses() -> None:
    assert addresses_of("c2=postgresql+asyncpg://a/b?x=1\n c3=d") == {"c2": "postgresql+asyncpg://a/b?x=1", "c3": "d"}
    with pytest.raises(ValueError, match="must look like"):
        addresses_of("c2")


def test_a_route_is_added_for_each_key() -> None:
    keys = {"Bearer sk-ballast-c2": {"action": "to c2"}}
    document = {"resources": [{"virtual_hosts": [{"matcher": {"matcher_tree": {"prefix_match_map": {"map": keys}}}}]}]}
    with_routes(document, ["sk-ballast-c1aa-"], "c2")
    assert keys["Bearer sk-ballast-c1aa-"] == {"action": "to c2"}
