"""What a `Database` promises beyond the stores: transactions, cancellation, translation of errors."""

import asyncio
import re
import sqlite3
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection, bindparam, insert, make_url, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.util import await_only

from backend.conversations.domain.leases import LeaseTerms
from backend.conversations.domain.responses import Checkpoint, PresetUse
from backend.conversations.domain.served_tools import ServedTools
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.leases import take_abandoned
from backend.conversations.sql.tables import replica
from backend.foundation.sql.chosen import check_database_reachable, open_database
from backend.foundation.sql.database import Database, compute_off_event_loop
from backend.foundation.sql.sqlite import SqliteDatabase
from backend.foundation.sql.statements import LONGEST_GROUP, Change, NothingMet, Statement
from backend.knowledge.domain.tickets import SearchOptions
from backend.search.domain.filters import Comparison
from shared.errors import CorruptRecord, InvalidRequest, TurnRunning, Unavailable
from tests.contract.store_cases import (
    FIXED_TOOLS,
    HOLD,
    POOL_WAIT_SECONDS,
    T0,
    append_next,
    empty_database_url,
    make_conversation,
    make_entry,
    make_response,
    make_turn,
    migrated,
    sql_stores,
)
from tests.fakes.sent_statements import noted_statements, transactions_in
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer

PROTECTED = "late bookings"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return empty_database_url("sqlite", request, tmp_path / "not" / "there" / "yet")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    async with migrated(url) as opened:
        yield opened


def count_replicas(connection: Connection) -> int:
    return connection.execute(text("SELECT count(*) FROM replica")).scalar_one()


ADD_REPLICA = Change(Statement(insert(replica)), [{"name": "a", "seen_at": T0}])
ADD_ANOTHER = Change(ADD_REPLICA.statement, [{"name": "b", "seen_at": T0}])

_SLEEPING = Statement(
    text("SELECT count(*) FROM pg_stat_activity WHERE application_name = :name AND wait_event = 'PgSleep'")
)


def add_replica(connection: Connection) -> None:
    connection.execute(text("INSERT INTO replica (name, seen_at) VALUES ('a', '2026-11-22 09:30:00')"))


async def test_all_statements_of_a_snapshot_see_the_same_state(database: Database) -> None:
    loop = asyncio.get_running_loop()

    def write_meanwhile() -> None:
        if database.dialect == "postgresql":
            await_only(database.write(add_replica))
        else:
            asyncio.run_coroutine_threadsafe(database.write(add_replica), loop).result(30)

    def work(connection: Connection) -> tuple[int, int]:
        before = count_replicas(connection)
        write_meanwhile()
        return before, count_replicas(connection)

    assert await database.snapshot(work) == (0, 0)
    assert await database.snapshot(count_replicas) == 1


async def test_what_takes_long_is_computed_off_the_event_loop(database: Database) -> None:
    thread = await database.write(lambda connection: compute_off_event_loop(connection, threading.get_ident))
    assert thread != threading.get_ident()


async def test_an_exception_rolls_back(database: Database) -> None:
    def work(connection: Connection) -> None:
        add_replica(connection)
        raise KeyError("no")

    with pytest.raises(KeyError):
        await database.write(work)
    assert await database.read(count_replicas) == 0
    await database.write(add_replica)
    assert await database.read(count_replicas) == 1


@pytest.mark.parametrize("count", [2, 2 * LONGEST_GROUP])
async def test_changes_are_committed_together_or_not_at_all(database: Database, count: int) -> None:
    def named(*names: str) -> Change:
        return Change(Statement(insert(replica)), [{"name": name, "seen_at": T0} for name in names])

    names = [f"replica-{number}" for number in range(count)]
    with pytest.raises((IntegrityError, sqlite3.IntegrityError)):
        await database.change([named(*names), named(names[0])])
    assert await database.read(count_replicas) == 0
    assert (await database.change([named("another"), named(), named(*names)]))[0] == 1
    assert await database.read(count_replicas) == count + 1


@pytest.mark.parametrize("count", [2, 2 * LONGEST_GROUP])
async def test_what_must_meet_a_row_and_meets_none_keeps_the_others_from_being_made(
    database: Database, count: int
) -> None:
    def renamed(name: str) -> Change:
        is_it = replica.c.name == bindparam("where_name")
        return Change(Statement(update(replica).where(is_it)), [{"name": "b", "where_name": name}], must_meet=True)

    others = Change(Statement(insert(replica)), [{"name": f"more-{each}", "seen_at": T0} for each in range(count)])
    await database.write(add_replica)
    for changes in ([renamed("nobody"), others], [others, renamed("nobody")]):
        with pytest.raises(NothingMet):
            await database.change(changes)
        assert await database.read(count_replicas) == 1
    assert (await database.change([renamed("a"), others]))[0] == 1
    assert await database.read(count_replicas) == count + 1


async def test_values_of_a_joined_change_come_where_they_belong(database: Database) -> None:
    first, second = make_turn(response_id="resp_a"), make_turn(response_id="resp_b", conversation_id="conv_b")
    stores = sql_stores(database)
    await stores.turns.begin(first)
    await stores.turns.begin(second)
    assert [await stores.turns.find(each.response.id) for each in (first, second)] == [first.response, second.response]
    assert await stores.conversations.log("conv_b") == second.entries


async def test_sqlite_work_that_is_cancelled_leaves_neither_lock_nor_broken_connection(tmp_path: Path) -> None:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/a.db") as database:
        begun, go_on = threading.Event(), threading.Event()

        def work(connection: Connection) -> None:
            add_replica(connection)
            begun.set()
            assert go_on.wait(30)

        task = asyncio.create_task(database.write(work))
        await asyncio.to_thread(begun.wait)
        waiting = asyncio.create_task(database.write(add_replica))
        task.cancel()
        waiting.cancel()
        await asyncio.wait([task, waiting])
        assert task.cancelled()
        assert waiting.cancelled()
        assert await database.read(count_replicas) == 0  # a reader waits for no writer
        go_on.set()
        await database.write(lambda connection: None)
        assert await database.read(count_replicas) == 1  # what had begun is whole, what waited never ran


async def test_a_short_change_waits_for_who_writes(tmp_path: Path) -> None:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/a.db") as database:
        begun, go_on = threading.Event(), threading.Event()

        def work(connection: Connection) -> None:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)
            connection.execute(text("DELETE FROM replica"))

        writing = asyncio.create_task(database.write(work))
        await asyncio.to_thread(begun.wait)
        changing = asyncio.create_task(database.change([ADD_REPLICA]))
        assert await database.read(count_replicas) == 0
        go_on.set()
        await asyncio.gather(writing, changing)
        assert await database.read(count_replicas) == 1


async def test_a_short_change_waits_for_another_process_and_nobody_for_it(tmp_path: Path) -> None:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/a.db") as database:
        await database.change([ADD_REPLICA])
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        changing = asyncio.create_task(database.change([ADD_ANOTHER]))
        assert await database.read(count_replicas) == 1
        assert not changing.done()
        other.execute("COMMIT")
        await changing
        assert await database.read(count_replicas) == 2


async def test_postgres_work_that_is_cancelled_leaves_neither_lock_nor_broken_connection(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        for _ in range(25):  # more than the pool holds
            loop, begun = asyncio.get_running_loop(), asyncio.Event()

            def work(
                connection: Connection, loop: asyncio.AbstractEventLoop = loop, begun: asyncio.Event = begun
            ) -> None:
                connection.execute(text("LOCK TABLE replica"))
                loop.call_soon(begun.set)
                connection.execute(text("SELECT pg_sleep(60)"))

            task = asyncio.create_task(database.write(work))
            await begun.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        await database.write(add_replica)
        assert await database.read(count_replicas) == 1


async def test_a_statement_alone_that_is_cancelled_leaves_no_broken_connection(postgres_url: str) -> None:
    long = Statement(text("SELECT pg_sleep(60), pg_advisory_xact_lock(:key)"))
    async with migrated(postgres_url) as database:
        for _ in range(25):  # more than the pool holds
            task = asyncio.create_task(database.find(long, {"key": 1}))
            await asyncio.sleep(0)
            while not (await database.find(_SLEEPING, {"name": "ballast"}) or {"count": 0})["count"]:
                continue
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert (await database.change([ADD_REPLICA]))[0] == 1
        assert await database.read(count_replicas) == 1


async def test_a_time_that_runs_out_is_unavailable(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        with pytest.raises(Unavailable):
            await database.write(lambda c: c.execute(text("SELECT pg_sleep(60)")), timeout_seconds=0.05)
        await database.ping()


async def test_the_locks_of_a_process_that_stands_still_are_freed_before_others_give_up(postgres_url: str) -> None:
    """Whoever takes its turns over waits for them: no longer than for its lease, about."""
    names = ("idle_in_transaction_session_timeout", "lock_timeout")
    async with migrated(postgres_url) as database:
        limits = [
            await database.read(
                lambda connection, name=name: str(connection.exec_driver_sql(f"SHOW {name}").scalar_one())
            )
            for name in names
        ]
    assert limits == ["10s", "10s"]


async def test_a_server_that_is_away_is_unavailable() -> None:
    database = open_database(f"postgresql+asyncpg://nobody@127.0.0.1:{free_port()}/none")
    with pytest.raises(Unavailable) as caught:
        await database.ping()
    assert "127.0.0.1" not in caught.value.message
    await database.close()


async def test_postgres_that_restarts_is_used_again(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        await database.write(add_replica)
        postgres_server.kill()
        with pytest.raises(Unavailable):
            await database.read(count_replicas)
        postgres_server.restart()
        assert await database.read(count_replicas) == 1


async def test_a_statement_alone_finds_a_restarted_postgres_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with migrated(postgres_url) as database:
        await database.change([ADD_REPLICA])
        postgres_server.kill()
        with pytest.raises(Unavailable):
            await database.change([ADD_REPLICA])
        postgres_server.restart()
        with pytest.raises(IntegrityError) as raised:
            await database.change([ADD_REPLICA])
        assert "pk_replica" in str(raised.value)


async def test_a_sqlite_path_that_is_a_directory_is_unavailable(tmp_path: Path) -> None:
    database = open_database(f"sqlite+aiosqlite:///{tmp_path}")
    with pytest.raises(Unavailable):
        await database.ping()
    await database.close()


@pytest.mark.parametrize("bad", ["nonsense", "mysql://x/y", "sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:"])
def test_an_address_of_something_else_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite|SQLite"):
        open_database(bad)


async def test_text_that_postgres_cannot_hold_is_the_callers_fault(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        with pytest.raises(InvalidRequest):
            await sql_stores(database).turns.find("resp_\x00")


async def said(database: Database, work: Callable[[Connection], object], expected: type[BaseException]) -> str:
    """Return all that a log could show of what the work raises."""
    with pytest.raises(expected) as raised:
        await database.write(work)
    return "".join((str(raised.value), *traceback.format_exception(raised.value)))


@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        ("replica", "INSERT INTO replica (name, seen_at) VALUES (:name, '2026-11-22'), (:name, '2026-11-22')"),
        ("seen_at", "INSERT INTO replica (name, seen_at) VALUES (:name, NULL)"),
    ],
)
async def test_an_error_says_which_constraint_broke_and_by_no_value(
    database: Database, constraint: str, statement: str
) -> None:
    def work(connection: Connection) -> None:
        connection.execute(text(statement), {"name": PROTECTED})

    shown = await said(database, work, IntegrityError)
    assert constraint in shown
    assert PROTECTED not in shown


async def test_an_error_of_a_change_says_no_value(database: Database) -> None:
    same = Change(Statement(insert(replica)), [{"name": PROTECTED, "seen_at": T0}] * 2)
    with pytest.raises((IntegrityError, sqlite3.IntegrityError)) as raised:
        await database.change([same])
    assert PROTECTED not in "".join(traceback.format_exception(raised.value))


async def test_an_error_that_becomes_another_brings_no_value_along(database: Database) -> None:
    statement = text("INSERT INTO replica (name, seen_at) VALUES (:name, NULL)")

    def work(connection: Connection) -> None:
        try:
            connection.execute(statement, {"name": PROTECTED})
        except IntegrityError as error:
            raise KeyError("name") from error

    shown = await said(database, work, KeyError)
    assert "IntegrityError" in shown
    assert PROTECTED not in shown


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        (PROTECTED, "SELECT CAST(CAST(:name AS text) AS integer)"),
        (PROTECTED, "SELECT 1 + :name"),
        (PROTECTED + "\ud800", "SELECT CAST(:name AS text)"),
    ],
)
async def test_a_value_that_postgres_refuses_is_not_quoted(postgres_url: str, name: str, statement: str) -> None:
    def work(connection: Connection) -> None:
        connection.execute(text(statement), {"name": name})

    async with migrated(postgres_url) as database:
        shown = await said(database, work, DBAPIError)
        with pytest.raises(DBAPIError) as raised:
            await database.find(Statement(text(statement)), {"name": name})
    for each in (shown, "".join((str(raised.value), *traceback.format_exception(raised.value)))):
        assert "SQLSTATE 22" in each
        assert PROTECTED not in each


async def test_text_that_json_cannot_hold_is_the_callers_fault(database: Database) -> None:
    for bad in ("\ud800", 2**70):
        with pytest.raises(InvalidRequest):
            await sql_stores(database).turns.checkpoint_many([Checkpoint(HOLD, ({"x": bad},), 1)])


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE log_entry SET content = '{\"role\":' WHERE position = 1 AND conversation_id = 'conv_a'",
        "UPDATE log_entry SET content = '[]' WHERE position = 1 AND conversation_id = 'conv_a'",
        "UPDATE log_entry SET kind = 'unheard' WHERE position = 1 AND conversation_id = 'conv_a'",
        "UPDATE log_entry SET reset = '{' WHERE position = 1 AND conversation_id = 'conv_a'",
        "UPDATE log_entry SET context = '{}' WHERE position = 1 AND conversation_id = 'conv_a'",
    ],
)
async def test_a_damaged_entry_is_named_and_others_stay_readable(database: Database, damage: str) -> None:
    store = SqlConversationStore(database)
    entries = (make_entry(0), make_entry(1), make_entry(2))
    for name in ("conv_a", "conv_b"):
        await store.create(make_conversation(name, log_length=3), entries, ())
    await database.write(lambda connection: connection.execute(text(damage)))
    with pytest.raises(CorruptRecord, match=r"position 1 of conversation conv_a"):
        await store.log("conv_a")
    with pytest.raises(CorruptRecord, match=r"position 1 of conversation conv_a"):
        await store.open("conv_a", lambda _: True)
    assert await store.log("conv_a", 1) == entries[:1]
    assert await store.log("conv_b") == entries


async def test_filters_stand_where_the_release_before_does_not_read_and_end_with_its_turns(database: Database) -> None:
    stores = sql_stores(database)
    filters = Comparison(type="eq", key="kind", value="tea")
    turn = make_turn()
    conversation = turn.conversation.model_copy(update={"search": SearchOptions(max_results=3, filters=filters)})
    await stores.turns.begin(turn._replace(conversation=conversation))
    defaults = "SELECT turn_defaults FROM conversation"
    stored = await database.read(lambda connection: connection.execute(text(defaults)).scalar_one())
    assert orjson.loads(stored)["search"] == {"max_results": 3, "min_score": None}
    begun = "UPDATE conversation SET latest_response_id = 'resp_b'"
    await database.write(lambda connection: connection.execute(text(begun)))
    found = await stores.conversations.find("conv_a")
    assert found is not None
    assert found.search == SearchOptions(max_results=3)


async def test_fixed_tools_stand_where_the_release_before_does_not_read_and_end_with_its_turns(
    database: Database,
) -> None:
    stores = sql_stores(database)
    turn = make_turn()
    own = turn.conversation.settings.model_copy(update={"served": FIXED_TOOLS})
    use = PresetUse(response_id="resp_a", name="helper", own=own)
    changes = {"served": FIXED_TOOLS, "preset_use": use}
    conversation = turn.conversation.model_copy(update=changes)
    response = turn.response.model_copy(update={"preset_use": use})
    await stores.turns.begin(turn._replace(conversation=conversation, response=response))
    columns = "SELECT turn_defaults || preset_use FROM conversation UNION SELECT preset_use FROM response"
    stored = await database.read(lambda connection: connection.execute(text(columns)).scalars().all())
    assert "served" not in "".join(stored)
    found = await stores.conversations.find("conv_a")
    assert found is not None
    assert found.own_settings.served == FIXED_TOOLS
    begun = "UPDATE conversation SET latest_response_id = 'resp_b'"
    await database.write(lambda connection: connection.execute(text(begun)))
    found = await stores.conversations.find("conv_a")
    assert found is not None
    assert found.served == ServedTools()


async def test_damaged_conversations_items_and_responses_are_named(database: Database) -> None:
    stores = sql_stores(database)
    await stores.turns.begin(make_turn())
    for table, column in (("conversation", "turn_defaults"), ("item", "body"), ("response", "body")):
        statement = text(f"UPDATE {table} SET {column} = '{{'")
        await database.write(lambda connection, statement=statement: connection.execute(statement))
    with pytest.raises(CorruptRecord, match="conv_a"):
        await stores.conversations.find("conv_a")
    with pytest.raises(CorruptRecord, match="position 0 of conversation conv_a"):
        await stores.conversations.all_items("conv_a", 9, 99)
    with pytest.raises(CorruptRecord, match="resp_a"):
        await stores.turns.find("resp_a")
    await stores.turns.begin(make_turn(None, "resp_b", "conv_b"))
    taken = await stores.turns.take_all("replica-2")
    assert [turn.response.id for turn in taken] == ["resp_b"]  # the damaged one keeps no other from its end


async def test_checkpoints_of_many_turns_take_two_statements(url: str) -> None:
    with noted_statements() as sent:
        async with migrated(url) as database:
            stores = sql_stores(database)
            names = ("a", "b", "c", "d")
            for name in names:
                await stores.turns.begin(make_turn(None, f"resp_{name}", f"conv_{name}"))
            holds = [make_response(f"resp_{name}", f"conv_{name}").hold for name in names]
            await asyncio.sleep(0)  # the driver of PostgreSQL tells of a statement in the next step of the loop
            sent.clear()
            assert not await stores.turns.checkpoint_many([Checkpoint(hold, ({"n": 1},), 7) for hold in holds])
            # SQLite tells of each set of parameters.
            updates = 4 if database.dialect == "sqlite" else 1
    assert transactions_in(sent) <= 1
    assert len(sent) - updates <= 3, "the bounds of the transaction, and one statement besides"


async def test_no_plan_of_a_takeover_goes_beyond_its_limit(postgres_url: str) -> None:
    """A planner may compare each turn with the abandoned ones anew, and then must not look for others of them."""
    async with migrated(postgres_url) as database:
        stores, terms = sql_stores(database), LeaseTerms(seconds=600.0)
        await stores.turns.renew("replica-b", terms)
        for number in range(5):
            turn = make_turn(None, f"resp_{number}", f"conv_{number}")
            await stores.turns.begin(turn)
            await stores.turns.release(turn.response.hold)

        def take(connection: Connection) -> int:
            for kind in ("hashagg", "hashjoin", "mergejoin", "sort", "material", "memoize", "bitmapscan", "indexscan"):
                connection.execute(text(f"SET LOCAL enable_{kind} = off"))
            return len(take_abandoned(connection, "replica-b", terms, 1))

        assert await database.write(take) == 1


async def test_a_lease_is_renewed_and_turns_are_taken_beside_any_number_of_slow_calls(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        stores, terms = sql_stores(database), LeaseTerms(seconds=90.0)
        turn = make_turn()
        await stores.turns.begin(turn)
        await stores.turns.release(turn.response.hold)
        slow = [
            asyncio.create_task(database.read(lambda connection: connection.execute(text("SELECT pg_sleep(60)"))))
            for _ in range(50)
        ]
        await asyncio.sleep(0.2)
        async with asyncio.timeout(POOL_WAIT_SECONDS):
            await stores.turns.renew("replica-b", terms)
            assert len(await stores.turns.take_abandoned("replica-b", terms, 9)) == 1
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)


async def test_a_renewal_that_hangs_fails_before_the_lease_has_ended(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        turns, terms = sql_stores(database).turns, LeaseTerms(seconds=6.0)
        await turns.renew("replica-a", terms)
        locked, done = asyncio.Event(), asyncio.Event()

        def lock(connection: Connection) -> None:
            connection.execute(text("LOCK TABLE replica"))
            locked.set()
            await_only(done.wait())

        holder = asyncio.create_task(database.write(lock))
        await locked.wait()
        async with asyncio.timeout(terms.seconds):
            with pytest.raises(Unavailable):
                await turns.renew("replica-a", terms)
        done.set()
        await holder
        await turns.renew("replica-a", terms)


async def test_of_turns_through_two_engines_one_wins(url: str) -> None:
    async with migrated(url) as first, migrated(url) as second:
        turn_stores = [sql_stores(database).turns for database in (first, second)]
        conversations = SqlConversationStore(first)
        for attempt in range(5):
            name = f"conv_{attempt}"
            await conversations.create(make_conversation(name), (), ())
            beginnings = [
                turn_stores[place % 2].begin(make_turn(0, f"resp_{attempt}_{place}", name)) for place in range(6)
            ]
            outcomes = await asyncio.gather(*beginnings, return_exceptions=True)
            assert outcomes.count(None) == 1
            assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 5
            assert len(await conversations.log(name)) == 1


async def test_appends_through_two_engines_leave_no_gap(url: str) -> None:
    async with migrated(url) as first, migrated(url) as second:
        stores = [SqlConversationStore(database) for database in (first, second)]
        await stores[0].create(make_conversation(), (), ())

        await asyncio.gather(*(append_next(stores[place % 2]) for place in range(16)))
        assert [entry.position for entry in await stores[0].log("conv_a")] == list(range(16))
        assert len(await stores[1].all_items("conv_a", 99, 99)) == 16


async def test_a_file_that_is_no_database_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database, " * 100)
    for url, cause in (
        (f"sqlite+aiosqlite:///{path}", "DatabaseError"),
        (f"sqlite+aiosqlite:///{path}/a.db", "FileExistsError"),
    ):
        database = open_database(url)
        with pytest.raises(ValueError, match=rf"cannot use {re.escape(url)} \({cause}\)"):
            await check_database_reachable(database, url)
        await database.close()


async def test_a_frozen_postgres_is_unavailable_in_time_and_used_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with migrated(postgres_url) as database:
        await database.check_writable()
        with postgres_server.frozen():
            frozen = [database.write(add_replica, timeout_seconds=0.2) for _ in range(30)]  # more than the pool holds
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcomes = await asyncio.gather(*frozen, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {Unavailable}
        await database.check_writable()
        await database.write(add_replica)
        assert await database.read(count_replicas) == 1


async def test_who_asks_whether_there_is_room_takes_some_and_gives_it_back(postgres_url: str) -> None:
    """A full disk takes writes into pages that are there: it must be asked for new ones."""

    def room_and_objects(connection: Connection) -> tuple[int, int]:
        sizes = "SELECT pg_relation_size('pg_largeobject'), (SELECT count(*) FROM pg_largeobject_metadata)"
        size, count = connection.execute(text(sizes)).one()
        return size, count

    async with migrated(postgres_url) as database:
        before, _ = await database.read(room_and_objects)
        await database.check_writable()
        after, objects = await database.read(room_and_objects)
    assert (after > before, objects) == (True, 0)


async def test_a_full_disk_beneath_sqlite_is_told(tmp_path: Path) -> None:
    url = make_url(f"sqlite+aiosqlite:///{tmp_path}/a.db")
    async with migrated(url.render_as_string()):
        pass
    for least_free_bytes, is_full in ((1, False), (2**60, True)):
        database = SqliteDatabase(url, least_free_bytes)
        with pytest.raises(Unavailable, match="is full") if is_full else nullcontext():
            await database.check_writable()
        await database.close()


async def test_bursts_open_no_more_connections_than_are_kept_and_calls_in_turn_use_the_same(postgres_url: str) -> None:
    def session(connection: Connection) -> int:
        return connection.execute(text("SELECT pg_backend_pid() FROM pg_sleep(0.01)")).scalar_one()

    async with migrated(postgres_url) as database:
        sessions = [await asyncio.gather(*(database.write(session) for _ in range(60))) for _ in range(3)]
        one_by_one = [await database.read(session) for _ in range(4)]
    assert len({session for burst in sessions for session in burst}) <= 20
    assert len(set(one_by_one)) == 1


async def test_a_database_that_only_reads_is_not_writable(postgres_url: str) -> None:
    async with migrated(postgres_url) as database:
        await database.check_writable()
        name = postgres_url.rpartition("/")[2]
        alter = text(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await database.write(lambda connection: connection.execute(alter))
    reopened = open_database(postgres_url)
    await reopened.ping()
    with pytest.raises(Unavailable):
        await reopened.check_writable()
    await reopened.close()
