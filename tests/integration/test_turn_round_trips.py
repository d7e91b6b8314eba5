"""How often a turn asks the database: before its first request is sent, and at its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.redis.client import connect
from backend.foundation.sql.database import Database
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.stop_signals import RedisStopSignals
from shared.errors import TurnRunning
from tests.contract.store_cases import T0, database_url, made, make_call, make_end, make_turn, migrated, sql_stores
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA, open_house
from tests.fakes.sent_statements import noted_statements, transactions_in
from tests.fakes.store_state import StoreState
from tests.fakes.supervision import make_supervisor

Behind = Callable[[StoredResponse], dict[str, str]]


class CountingDatabase:
    """Hands everything on, and counts how often it is asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._database, name)
        self.asked += callable(found)
        return found


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CountingDatabase]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield CountingDatabase(opened)


async def asked_until_sent(database: Any, behind: Behind) -> int:
    """Begin a turn behind another one; count what the database was asked until the model could speak."""
    gate = asyncio.Event()

    def conversations(_: StoreState) -> SqlConversationStore:
        return SqlConversationStore(database)

    def turns(_: StoreState) -> SqlTurnStore:
        return SqlTurnStore(database)

    async with open_house(
        answer("Hello."),
        [gate, *answer("And again.")],
        conversations_class=conversations,
        turns_class=turns,
        checkpoint_seconds=60.0,
    ) as house:
        first = await house.ask()
        before = database.asked
        running = await house.start(ADA, **behind(first))
        asked = database.asked - before
        gate.set()
        assert (await running.wait_until_ended()).status == "completed"
        return asked


async def test_the_log_costs_a_turn_one_read_and_one_write(database: CountingDatabase) -> None:
    assert await asked_until_sent(database, lambda first: {"conversation": first.conversation_id}) <= 2


async def test_behind_a_response_that_one_is_read_besides(database: CountingDatabase) -> None:
    assert await asked_until_sent(database, lambda first: {"previous_response_id": first.id}) <= 3


# As each is stored: one statement of PostgreSQL can do what takes SQLite, which is asked without a round trip, several.
MOST_STATEMENTS = {"sqlite": 8, "postgresql": 1}


@pytest.mark.parametrize("kind", list(MOST_STATEMENTS))
async def test_a_turn_is_stored_in_two_transactions(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with noted_statements() as sent:

        async def check_one_transaction() -> None:
            await asyncio.sleep(0)  # the driver of PostgreSQL tells of a statement in the next step of the loop
            assert transactions_in(sent) <= 1
            assert 1 <= len(sent) <= MOST_STATEMENTS[kind]
            sent.clear()

        async with migrated(database_url(kind, request, tmp_path)) as database:
            turns = sql_stores(database).turns
            await database.change([])  # what a first one needs is there
            sent.clear()
            claim = KeyClaim(id="key", fingerprint="f", claimed_at=T0, created="resp_a")
            await turns.begin(make_turn()._replace(claim=claim))
            await check_one_transaction()
            assert await turns.finish(make_end(1)._replace(calls=made(make_call(1))))
            await check_one_transaction()
            await turns.begin(make_turn(2, "resp_2"))
            await check_one_transaction()
            with pytest.raises(TurnRunning):
                await turns.begin(make_turn(2, "resp_3"))
            assert await turns.find("resp_3") is None


# Of a turn in a conversation: that and its log are read, the turn begins, and ends. In SQLite with the bounds of three
# transactions.
MOST_OF_A_TURN = {"sqlite": 22, "postgresql": 4}


@pytest.mark.parametrize("kind", list(MOST_OF_A_TURN))
async def test_a_whole_turn_takes_few_statements(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with noted_statements() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database:

            def conversations(_: StoreState) -> SqlConversationStore:
                return SqlConversationStore(database)

            def turns(_: StoreState) -> SqlTurnStore:
                return SqlTurnStore(database)

            async with open_house(
                *[answer(said) for said in ("One.", "Two.", "Three.")],
                conversations_class=conversations,
                turns_class=turns,
                checkpoint_seconds=60.0,
            ) as house:
                first = await house.ask()
                await house.ask(conversation=first.conversation_id)  # what a first statement needs is there
                await asyncio.sleep(0)
                sent.clear()
                await house.ask(conversation=first.conversation_id)
                await asyncio.sleep(0)
                assert 3 <= len(sent) <= MOST_OF_A_TURN[kind], sent


# The first events and their life; signals; the first piece of the answer; the rest of it and the end.
MOST_TRIPS = 5


async def test_a_whole_turn_asks_redis_a_few_times(valkey_url: str) -> None:
    client: Any = connect(valkey_url)
    supervisor, trips = make_supervisor(), 0

    class CountingClient:
        """Hands everything on, and counts what goes to Redis but for what waits there."""

        def __getattr__(self, name: str) -> Any:
            nonlocal trips
            trips += name not in ("xread", "xrevrange")  # of the one listener of a process
            return getattr(client, name)

    counting: Any = CountingClient()
    events, signals = RedisEventLog(counting, supervisor, 600.0), RedisStopSignals(counting, supervisor)
    try:
        async with open_house(answer("One."), answer("Two."), events=events, signals=signals) as house:
            await house.ask()
            trips = 0
            await house.ask()
            assert 3 <= trips <= MOST_TRIPS
    finally:
        await signals.aclose()
        await events.aclose()
        await client.aclose()
